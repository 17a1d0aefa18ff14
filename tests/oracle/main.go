// Command oracle records the decisions of the ReplicaSet controller of Kubernetes. It runs upstream's own code, in process, on random
// objects, and writes the results as JSON lines, each file compressed with gzip.
//
//	go run . -seed 7 -n 1000 -faults 0.3 -out /tmp/recorded
//	DECREE_GOLDEN=/tmp/recorded cargo test -p tests --test golden
//
// The same seed gives the same cases. Times count back from the second of the recording, because upstream reads the clock of
// the machine; so the bytes differ from run to run. tests/golden/README.md describes the files; tests/oracle/compare does both steps.
package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

// patience is how long after its second a case may still run. The ages of pods are chosen so that upstream decides the same until then.
const patience = 1500 * time.Millisecond

var (
	seed   = flag.Int64("seed", 1, "draws the cases; the same seed asks the same questions")
	n      = flag.Int("n", 400, "cases in each file")
	faults = flag.Float64("faults", 0.3, "share of the syncs in which calls of the API fail, from 0 to 1")
	out    = flag.String("out", "", "folder to write to, which is made if it is not there (required)")
	rng    *rand.Rand
	now    time.Time
)

func main() {
	logs := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(logs)
	must(logs.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}))
	klog.SetOutput(nothing{})
	flag.Parse()
	if *out == "" || flag.NArg() > 0 || *faults < 0 || *faults > 1 {
		flag.Usage()
		os.Exit(64)
	}
	// Off before 1.35: the API server then drops the field, and Decree stops writing it.
	must(feature.DefaultMutableFeatureGate.Set("DeploymentReplicaSetTerminatingReplicas=true"))
	must(os.MkdirAll(*out, 0o755))
	write("selectors.jsonl", selectorCase)
	write("deletion-order.jsonl", orderCase)
	write("syncs.jsonl", syncCase)
}

// nothing discards the log of upstream.
type nothing struct{}

func (nothing) Write(text []byte) (int, error) { return len(text), nil }

func write(name string, record func(i int) any) {
	file, err := os.Create(filepath.Join(*out, name+".gz"))
	must(err)
	buffered := bufio.NewWriter(file)
	packed, err := gzip.NewWriterLevel(buffered, gzip.BestCompression)
	must(err)
	encoder := json.NewEncoder(packed)
	encoder.SetEscapeHTML(false)
	for i := range *n {
		must(encoder.Encode(inTime(i, record)))
	}
	must(packed.Close())
	must(buffered.Flush())
	must(file.Close())
}

// inTime records case i. It repeats a recording that the machine did not finish within the second of the case.
func inTime(i int, record func(i int) any) any {
	for {
		rng = rand.New(rand.NewSource(*seed*1_000_003 + int64(i)))
		serial = 0
		now = time.Now().UTC().Truncate(time.Second)
		recorded := record(i)
		if time.Since(now) < patience {
			return recorded
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func pick[T any](xs ...T) T { return xs[rng.Intn(len(xs))] }

func chance(p float64) bool { return rng.Float64() < p }
