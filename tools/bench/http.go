package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const httpAbout = `bench http sends a call of 300 bytes with eight typed arguments to each of these in turn:

  direct    the tool itself
  nginx     nginx with a pool of connections to the tool, where it is installed
  tuned     gin with httputil.ReverseProxy and a transport that keeps enough idle
            connections: the reference, 1
  untuned   the same with the default transport, which keeps two
  own       gin and a buffered client that checks nothing
  memory    callgate serve with every check on, its audit log in memory
  disk      the same, its audit log on disk
  once      as memory, with a tool whose effect may be had once only
  shared    as memory, with its limits on Redis, where redis-server is installed

For each number of connections it prints the processor time of the subject's process a
request, user and system together, then requests a second and the median latency: how
the rounds lie, and the ratio to the reference, which is the median over the rounds of
the ratio within a round. Absolute figures mean little on a shared machine; ratios do,
and processor time more than requests a second.
`

// reference is the subject whose figures are 1.
const reference = "tuned"

func httpBench(ctx context.Context, args []string) error {
	p := newPlan("http", httpAbout, []string{"direct", "nginx", reference, "untuned", "own", "memory", "disk", "once", "shared"})
	program := p.flags.String("callgate", "", "measure this `program` instead of building this tree's")
	connections := counts{1, 32, 128}
	p.flags.Var(&connections, "connections", "`numbers` of connections, with commas between")
	p.withMemory()
	if err := p.parse(args); err != nil {
		return err
	}
	h, err := newHall()
	if err != nil {
		return err
	}
	defer h.close()
	built, err := h.build(ctx, *program, product)
	if err != nil {
		return err
	}
	address, subjects, err := h.start(ctx, p, built)
	if err != nil {
		return err
	}
	var cases []*benchCase
	for _, n := range connections {
		cases = append(cases, &benchCase{
			name: over("calls", n), metrics: ofRequests(), subjects: subjects, reference: reference,
			load: func(ctx context.Context, s *subject) (sample, error) {
				return h.requests(ctx, s, s.script, n, p.seconds)
			},
		})
	}
	before := loadAverage()
	if err := measure(ctx, cases, p.rounds); err != nil {
		return err
	}
	fmt.Printf("%d rounds of %d s; load average %s before, %s after\n", p.rounds, p.seconds, before, loadAverage())
	for _, c := range cases {
		c.print()
	}
	if !p.memory {
		return nil
	}
	fresh, err := h.callGateway(ctx, built, "fresh", memory, callTool("read", address))
	if err != nil {
		return err
	}
	return printMemory(ctx, []*subject{fresh}, p.calls)
}

// start starts the tool, and what of the subjects is wanted.
func (h *hall) start(ctx context.Context, p *plan, program string) (address string, subjects []*subject, err error) {
	toolPID, address, err := h.self(roleTool)
	if err != nil {
		return "", nil, err
	}
	direct, err := h.script("direct.lua", arguments, "application/json")
	if err != nil {
		return "", nil, err
	}
	add := func(name string, start func() (*subject, error)) {
		if err != nil || name != reference && !p.wants(name) {
			return
		}
		var s *subject
		if s, err = start(); s == nil || err != nil {
			return
		}
		s.name = name
		if s.script == "" { // it is no gateway
			s.script, s.url = direct, s.url+"/echo"
		}
		subjects = append(subjects, s)
	}
	add("direct", func() (*subject, error) { return &subject{pid: toolPID, url: "http://" + address}, nil })
	add("nginx", func() (*subject, error) { return h.nginx(ctx, address) })
	for _, kind := range []string{reference, "untuned", "own"} {
		add(kind, func() (*subject, error) { return h.proxy(kind, address) })
	}
	read := callTool("read", address)
	add("memory", func() (*subject, error) { return h.callGateway(ctx, program, "memory", memory, read) })
	add("disk", func() (*subject, error) { return h.callGateway(ctx, program, "disk", h.work, read) })
	add("once", func() (*subject, error) {
		return h.callGateway(ctx, program, "once", memory, callTool("once", address))
	})
	add("shared", func() (*subject, error) { return h.shared(ctx, program, read) })
	return address, subjects, err
}

// callTool are the files of a gateway that calls the tool at an address.
func callTool(effect, address string) map[string]string {
	run := fmt.Sprintf(`{type: http, url: "http://%s/echo", addresses: [127.0.0.1/32]}`, address)
	return map[string]string{"tools/bench.yaml": benchTool(effect, run)}
}

// callGateway starts a gateway whose calls are measured, with its log below a folder.
func (h *hall) callGateway(ctx context.Context, program, name, log string, files map[string]string) (*subject, error) {
	data, err := h.folder(log)
	if err != nil {
		return nil, err
	}
	s, err := h.gateway(ctx, program, name, data, files)
	if err != nil {
		return nil, err
	}
	s.url += "/v1/calls"
	s.script, err = h.script("call.lua", completion, "text/plain")
	return s, err
}

// script writes a script for wrk, which sends one request.
func (h *hall) script(name, body, media string) (string, error) {
	path := filepath.Join(h.work, name)
	return path, os.WriteFile(path, []byte(
		"wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \""+media+"\"\nwrk.body = [["+body+"]]\n"), 0o600)
}
