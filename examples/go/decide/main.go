// Decide asks the server which pods of a snapshot it would delete, and why. The snapshot is JSON on standard input, as in docs/examples/decide.json.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

func main() {
	snapshot, _ := io.ReadAll(os.Stdin)
	request := &v1.DecideRequest{}
	if err := protojson.Unmarshal(snapshot, request); err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := v1.NewDecisionServiceClient(conn).Decide(context.Background(), request)
	if err != nil {
		log.Fatal(err)
	}
	for _, victim := range answer.Decision.Deletes {
		fmt.Println(victim.Pod.Name, victim.Reason.Detail)
	}
}
