// Ranker tells an agent which pods to spare in a scale-down: those with jobs in a file of lines `POD JOBS`, which is read at each question.
// Replace the file with your scheduler, your queue or your database.
//
//	ranker ADDRESS JOBS [CERTIFICATE KEY]
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

type ranker struct {
	v1.UnimplementedScaleInServiceServer
	jobs string
}

func (r *ranker) Rank(_ context.Context, request *v1.RankRequest) (*v1.RankResponse, error) {
	file, err := os.Open(r.jobs)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	jobs := map[string]int32{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var pod string
		var count int32
		if _, err := fmt.Sscan(lines.Text(), &pod, &count); err == nil {
			jobs[pod] = count
		}
	}
	response := &v1.RankResponse{}
	for _, pod := range request.Pods {
		response.Costs = append(response.Costs, &v1.PodCost{Uid: pod.Uid, Cost: proto.Int32(jobs[pod.Name])})
	}
	return response, nil
}

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listens on", listener.Addr())
	options := []grpc.ServerOption{}
	if len(os.Args) > 4 {
		tls, err := credentials.NewServerTLSFromFile(os.Args[3], os.Args[4])
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(tls))
	}
	server := grpc.NewServer(options...)
	v1.RegisterScaleInServiceServer(server, &ranker{jobs: os.Args[2]})
	log.Fatal(server.Serve(listener))
}
