// Command bench sets the gateway beside fair baselines, all in one run:
//
//	direct    the tool itself
//	nginx     nginx with a pool of connections to the tool, where it is installed
//	tuned     gin with httputil.ReverseProxy and a transport that keeps enough idle
//	          connections: the reference, 1
//	untuned   the same with the default transport, which keeps two
//	own       gin and a buffered client that checks nothing
//	memory    callgate serve with every check on, its audit log in memory
//	disk      callgate serve with every check on, its audit log on disk
//	once      as memory, with a tool whose effect may be had once only (the default)
//	shared    as memory, with its limits on Redis, where redis-server is installed
//
// The call has about 300 bytes and eight typed arguments. wrk loads each in turn, five
// rounds interleaved, at each number of connections, and the medians are printed with
// their ratios to the reference: requests a second, processor time a request of the
// process in between, and the median latency. Absolute figures mean little on a shared
// machine; the ratios do. It takes about six minutes and stops the processes that it
// started.
//
// With -chat it does the same for chat completions, in front of a mock model;
// see chat.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	proxyTo := flag.String("proxy", "", "be a bare proxy to this `URL`, and nothing else")
	kind := flag.String("kind", "tuned", "the kind of that proxy: tuned, untuned or own")
	beTool := flag.Bool("tool", false, "be the tool, and nothing else")
	beModel := flag.Bool("model", false, "be the mock model, and nothing else")
	chat := flag.Bool("chat", false, "measure completions of a model")
	speaks := flag.String("wire", "chat", "the API whose completions are measured, with -chat: "+wireNames())
	short := flag.Int("streams", 10_000, "how many short streams are counted, with -chat")
	program := flag.String("callgate", "", "measure this `program` instead of building the one of this checkout")
	rounds := flag.Int("rounds", 5, "how often each is loaded")
	seconds := flag.Int("seconds", 3, "how long each time")
	connections := flag.String("connections", "32,1", "how many connections, one after the other; with -chat the first counts")
	flag.Parse()
	counts, err := readCounts(*connections)
	spoken, known := wires[*speaks]
	if !known {
		err = fmt.Errorf("-wire: found %q, expected one of %s", *speaks, wireNames())
	}
	switch {
	case err != nil:
	case *proxyTo != "":
		err = proxy(*kind, *proxyTo)
	case *beTool:
		err = tool()
	case *beModel:
		err = mock()
	case *chat:
		err = chatBench{rounds: *rounds, seconds: *seconds, connections: counts[0], streams: *short, program: *program, speaks: *speaks, wire: spoken}.run()
	default:
		err = bench(*program, *rounds, *seconds, counts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// readCounts reads a list of numbers of connections.
func readCounts(list string) ([]int, error) {
	var counts []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-connections: found %q, expected numbers above 0 with commas between", text)
		}
		counts = append(counts, n)
	}
	return counts, nil
}
