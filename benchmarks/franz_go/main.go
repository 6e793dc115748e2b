// One run of the benchmarks with franz-go: takes a Run (benchmarks/run.py) as JSON, prints a Measurement.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type run struct {
	BootstrapServers string `json:"bootstrap_servers"`
	Topic            string `json:"topic"`
	Payload          string `json:"payload"`
	Records          int    `json:"records"`
	WarmUp           int    `json:"warm_up"`
	LingerMs         int    `json:"linger_ms"`
	Compression      string `json:"compression"`
	Keyed            bool   `json:"keyed"`
}

type measurement struct {
	Records    int            `json:"records"`
	Seconds    float64        `json:"seconds"`
	CPUSeconds float64        `json:"cpu_seconds"`
	PeakRSS    int64          `json:"peak_rss"`
	Failures   map[string]int `json:"failures"`
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(),
	"lz4":  kgo.Lz4Compression(),
	"zstd": kgo.ZstdCompression(),
}

func main() {
	var r run
	if len(os.Args) != 2 {
		fail(errors.New("one argument is wanted, a run as JSON"))
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &r); err != nil {
		fail(err)
	}
	measured, err := measure(r)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(measured); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func measure(r run) (*measurement, error) {
	codec, known := codecs[r.Compression]
	if !known {
		return nil, fmt.Errorf("unknown compression %q", r.Compression)
	}
	data, err := os.ReadFile(r.Payload)
	if err != nil {
		return nil, err
	}
	// What is not said here is the client's default: idempotent, acks=all, batches up to 1 MB.
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(r.BootstrapServers, ",")...),
		kgo.DefaultProduceTopic(r.Topic),
		kgo.ProducerLinger(time.Duration(r.LingerMs)*time.Millisecond),
		kgo.ProducerBatchCompression(codec),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	values := bytes.Split(data, []byte("\n"))
	failures, err := stream(client, r, values, r.WarmUp)
	if err != nil {
		return nil, err
	}
	if len(failures) > 0 {
		return nil, fmt.Errorf("records of the warm-up failed: %v", failures)
	}
	cpu, start := cpuSeconds(), time.Now()
	failures, err = stream(client, r, values, r.Records)
	seconds := time.Since(start).Seconds()
	if err != nil {
		return nil, err
	}
	peak, err := peakRSS()
	if err != nil {
		return nil, err
	}
	return &measurement{r.Records, seconds, cpuSeconds() - cpu, peak, failures}, nil
}

// stream sends so many records as fast as they are taken and looks at every outcome.
func stream(client *kgo.Client, r run, values [][]byte, records int) (map[string]int, error) {
	var keys [][]byte
	var headers []kgo.RecordHeader
	if r.Keyed {
		for number := range 1000 {
			keys = append(keys, fmt.Appendf(nil, "key-%012d", number))
		}
		headers = []kgo.RecordHeader{
			{Key: "trace-id", Value: []byte("4bf92f3577b34da6a3ce929d0e0e4736")},
			{Key: "source", Value: []byte("benchmarks")},
		}
	}
	var lock sync.Mutex
	failures := map[string]int{}
	acknowledged := func(_ *kgo.Record, err error) {
		if err == nil {
			return
		}
		lock.Lock()
		defer lock.Unlock()
		failures[kind(err)]++
	}
	ctx := context.Background()
	for number := range records {
		record := &kgo.Record{Value: values[number%len(values)], Headers: headers}
		if keys != nil {
			record.Key = keys[number%len(keys)]
		}
		client.Produce(ctx, record, acknowledged)
	}
	return failures, client.Flush(ctx)
}

func kind(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// peakRSS is the most memory this process ever had resident, in bytes.
func peakRSS() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			var kib int64
			_, err := fmt.Sscan(text, &kib)
			return kib * 1024, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
