package main

import (
	"context"
	"fmt"
)

const chatAbout = `bench chat sends requests for a completion to each of these in turn:

  direct    a mock model, whose answers are ready made
  tuned     gin with httputil.ReverseProxy and a transport that keeps enough idle
            connections: the reference, 1
  memory    callgate serve, which enforces, its audit log in memory
  disk      the same, its audit log on disk

and measures, at each number of connections but for the last three:

  text      completions of text
  call      completions of one call, which is judged and handed over
  first     the time until the first token of a short stream, one stream at a time
  long      streams of 200 chunks, at 32 connections
  short     streams of 4 chunks, at 32 connections

Processor time comes first, as in bench http. Streams that did not end as they should are
counted: a bare proxy cuts some.
`

// streamConnections are those of the long and the short streams.
const streamConnections = 32

func chatBench(ctx context.Context, args []string) error {
	p := newPlan("chat", chatAbout, []string{"text", "call", "first", "long", "short"})
	program := p.flags.String("callgate", "", "measure this `program` instead of building this tree's")
	connections := counts{1, 32, 128}
	p.flags.Var(&connections, "connections", "`numbers` of connections, with commas between")
	spoken := "chat"
	p.flags.Func("wire", "the `API` that is spoken: "+wireNames()+" (default chat)", func(name string) error {
		if _, known := wires[name]; !known {
			return fmt.Errorf("expected one of %s", wireNames())
		}
		spoken = name
		return nil
	})
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
	w := wires[spoken]
	subjects, err := h.startChat(ctx, built, spoken)
	if err != nil {
		return err
	}
	var cases []*benchCase
	add := func(all ...*benchCase) {
		for _, c := range all {
			c.subjects, c.reference = subjects, reference
			cases = append(cases, c)
		}
	}
	for _, n := range connections {
		if p.wants("text") {
			add(h.texts(&w, n, p.seconds))
		}
		if p.wants("call") {
			add(h.judgedCalls(&w, n, p.seconds))
		}
	}
	if p.wants("first") {
		add(firstTokens(&w))
	}
	if p.wants("long") {
		add(manyStreams(&w, longModel, longChunks, p.seconds))
	}
	if p.wants("short") {
		add(manyStreams(&w, shortModel, shortChunks, p.seconds))
	}
	before := loadAverage()
	if err := measure(ctx, cases, p.rounds); err != nil {
		return err
	}
	fmt.Printf("%s, %d rounds of %d s; load average %s before, %s after\n", spoken, p.rounds, p.seconds, before, loadAverage())
	for _, c := range cases {
		c.print()
	}
	return nil
}

// texts are completions of text.
func (h *hall) texts(w *wire, connections, seconds int) *benchCase {
	return h.completions(over("text", connections), w.request(textModel, ""), connections, seconds)
}

// judgedCalls are completions of one call.
func (h *hall) judgedCalls(w *wire, connections, seconds int) *benchCase {
	return h.completions(over("judged call", connections), w.request(callModel, w.offered), connections, seconds)
}

func (h *hall) completions(name, body string, connections, seconds int) *benchCase {
	return &benchCase{name: name, metrics: ofRequests(), load: func(ctx context.Context, s *subject) (sample, error) {
		script, err := h.script("completion.lua", body, "application/json")
		if err != nil {
			return sample{}, err
		}
		return h.requests(ctx, s, script, connections, seconds)
	}}
}

// startChat starts a mock model and what stands before it.
func (h *hall) startChat(ctx context.Context, program, speaks string) ([]*subject, error) {
	modelPID, model, err := h.self(roleModel)
	if err != nil {
		return nil, err
	}
	tuned, err := h.proxy(reference, model)
	if err != nil {
		return nil, err
	}
	path := "/v1" + wires[speaks].path
	tuned.url += path
	subjects := []*subject{{name: "direct", pid: modelPID, url: "http://" + model + path}, tuned}
	for _, g := range []struct{ name, log string }{{"memory", memory}, {"disk", h.work}} {
		s, err := h.chatGateway(ctx, program, g.name, g.log, model, speaks)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

// chatGateway starts a gateway before a model, with its log below a folder.
func (h *hall) chatGateway(ctx context.Context, program, name, log, model, speaks string) (*subject, error) {
	data, err := h.folder(log)
	if err != nil {
		return nil, err
	}
	s, err := h.gateway(ctx, program, name, data, map[string]string{
		"callgate.yaml":    "upstreams: upstreams.yaml\n",
		"tools/bench.yaml": benchTool("read", "{type: client}"),
		"upstreams.yaml": "upstreams:\n  - {name: mock, base_url: \"http://" + model + "/v1\", speaks: [" + speaks +
			"], modes: [enforce], models: [" + textModel + ", " + callModel + ", " + longModel + ", " + shortModel + "]}\n# end\n",
	})
	if err != nil {
		return nil, err
	}
	s.url += "/v1" + wires[speaks].path
	return s, nil
}
