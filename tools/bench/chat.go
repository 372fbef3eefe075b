package main

import (
	"fmt"
	"os"
)

// chatBench measures completions of one of the wires: the mock model itself, bare gin with
// httputil.ReverseProxy in front of it, tuned and not, and two gateways that enforce,
// with their logs in memory and on disk. All take turns, round by round:
//
//	text   requests per second for a completion of text
//	call   the same for one native call, which is judged and handed over
//	first  the time until the first token of a stream, one request at a time
//	long   chunks per second in streams of 200
//	short  how many of 10,000 short streams did not end as they should
type chatBench struct {
	rounds, seconds, connections, streams int
	program                               string // the gateway; empty: it is built
	speaks                                string // the name of the wire
	wire                                  wire
}

// chatCase is one of what is measured. Of measure's result more is better, but
// for times and counts.
type chatCase struct {
	name, unit, goal string
	measure          func(*subject) (float64, error)
	total            bool // the rounds are added up
}

func (b chatBench) run() error {
	h, wrk, err := newHall()
	if err != nil {
		return err
	}
	defer h.close()
	subjects, err := b.start(h)
	if err != nil {
		return err
	}
	cases := []chatCase{
		{name: "text", unit: "requests/s", goal: "0.9 of the tuned proxy's", measure: b.loading(h, wrk, "text.lua", b.wire.request(textModel, ""))},
		{name: "call", unit: "requests/s", goal: "0.9 of the tuned proxy's", measure: b.loading(h, wrk, "call.lua", b.wire.request(callModel, b.wire.offered))},
		{name: "first", unit: "µs", goal: "1.1 times the tuned proxy's", measure: b.firstToken},
		{name: "long", unit: "chunks/s", goal: "0.95 of the tuned proxy's", measure: b.longStreams},
		{name: "short", unit: "cut", goal: "0", measure: b.shortStreams, total: true},
	}
	measured := make([][][]float64, len(cases))
	for i := range cases {
		measured[i] = make([][]float64, len(subjects))
	}
	for round := range b.rounds {
		for i, c := range cases {
			for j, s := range subjects {
				value, err := c.measure(s)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.name, s.name, err)
				}
				measured[i][j] = append(measured[i][j], value)
				fmt.Fprintf(os.Stderr, "round %d: %-6s %-9s %10.0f %s\n", round+1, c.name, s.name, value, c.unit)
			}
		}
	}
	for i, c := range cases {
		c.print(subjects, measured[i])
	}
	return nil
}

// print shows the medians, and their ratios to those of the model itself and of
// the tuned proxy.
func (c chatCase) print(subjects []*subject, measured [][]float64) {
	fmt.Printf("%s, %s; goal: %s\n", c.name, c.unit, c.goal)
	for j, s := range subjects {
		if c.total {
			total := 0.0
			for _, v := range measured[j] {
				total += v
			}
			fmt.Printf("  %-10s %10.0f\n", s.name, total)
			continue
		}
		value := median(measured[j])
		fmt.Printf("  %-10s %10.0f   %5.2f of direct   %5.2f of the tuned proxy's\n", s.name, value, value/median(measured[0]), value/median(measured[1]))
	}
}

// loading is wrk with one request.
func (b chatBench) loading(h *hall, wrk, script, body string) func(*subject) (float64, error) {
	return func(s *subject) (float64, error) {
		path, err := h.script(script, body, "application/json")
		if err != nil {
			return 0, err
		}
		loaded := subject{name: s.name, pid: s.pid, script: path, url: s.url}
		if err := loaded.load(wrk, b.seconds, b.connections); err != nil {
			return 0, err
		}
		return loaded.rates[0], nil
	}
}

func (b chatBench) start(h *hall) ([]*subject, error) {
	program, err := h.build(b.program)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	modelPID, model, err := h.run(self, "-model")
	if err != nil {
		return nil, err
	}
	subjects := []*subject{{name: "direct", pid: modelPID, url: "http://" + model}}
	for _, kind := range []string{"tuned", "untuned"} {
		pid, proxied, err := h.run(self, "-kind", kind, "-proxy", "http://"+model)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, &subject{name: kind, pid: pid, url: "http://" + proxied})
	}
	gateways, err := h.gateways(program, map[string]string{
		"callgate.yaml":    "upstreams: upstreams.yaml\n",
		"tools/bench.yaml": benchTool("read", "{type: client}"),
		"upstreams.yaml":   "upstreams:\n  - {name: mock, base_url: \"http://" + model + "/v1\", speaks: [" + b.speaks + "], modes: [enforce], models: [" + textModel + ", " + callModel + ", " + longModel + ", " + shortModel + "]}\n# end\n",
	})
	subjects = append(subjects, gateways...)
	for _, s := range subjects {
		s.url += "/v1" + b.wire.path
	}
	return subjects, err
}
