package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/callgate/callgate/tools/internal/sample"
)

const (
	defaultListen   = "127.0.0.1:9001"
	defaultScenario = "agent"
)

const usageText = `samplemodel is a scripted model that speaks OpenAI's chat completions and
Responses, and Anthropic's Messages. It needs no key and plays scenarios; the name
of the model chooses one.

    samplemodel &
    curl -s http://127.0.0.1:9001/v1/chat/completions -H 'Content-Type: application/json' \
      -d '{"model":"text","messages":[{"role":"user","content":"Hello"}]}'

A request that offers tools gets native tool_calls; one that does not gets calls
as text, {"tool":{"name":…,"arguments":…}}. Send the result of a call back, and
the next turn of the scenario follows. --list names the scenarios.

A scenario of your own is a JSON file:

    {"turns":[
      {"calls":[{"name":"web.search","arguments":{"query":"tides"}}],
       "after_refusal":{"text":"I may not search."}},
      {"text":"I found {{/results/0/title}}."}
    ]}

Its other members are about, chunk (characters a streamed piece), write (bytes
at a time) and pause_ms; a turn's are fault (cut, stall or error), status and body
(an error), blocks (of a message) and items (of a response).

samplemodel healthcheck [--listen ADDRESS] says whether a running one is alive.

Flags:
`

// options are the flags.
type options struct {
	listen   string // host:port; port 0 is any free one
	scenario string // what a model of any other name plays
	list     bool
}

// run is the whole program. It serves until ctx ends and returns an exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "healthcheck" {
		return sample.Healthcheck(ctx, "samplemodel", defaultListen, args[1:], stderr)
	}
	var o options
	flags := flag.NewFlagSet("samplemodel", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", defaultListen, "the `address` to listen on, host:port; port 0 is any free one")
	flags.StringVar(&o.scenario, "scenario", defaultScenario, "the `scenario`, or a file that ends in .json, for models of any other name")
	flags.BoolVar(&o.list, "list", false, "name the scenarios, and end")
	flags.Usage = func() {
		fmt.Fprint(stderr, usageText)
		flags.PrintDefaults()
	}
	if code, ok := sample.Parse(flags, args, stderr); !ok {
		return code
	}
	return sample.ExitCode("samplemodel", start(ctx, o, stdout, stderr), stderr)
}

// start reads the scenarios, and serves.
func start(ctx context.Context, o options, stdout, stderr io.Writer) error {
	r, err := newRepertoire(o.scenario)
	if err != nil {
		return fmt.Errorf("--scenario %s: %w", o.scenario, err)
	}
	if o.list {
		r.list(stdout)
		return nil
	}
	listener, err := sample.Listen("samplemodel", o.listen, stdout)
	if err != nil {
		return err
	}
	return serve(ctx, newHandler(model{r, time.Now}), listener, stderr)
}

// serve serves until ctx ends, which ends stalled and paused answers too, and lets the
// other requests finish for the time of grace. It closes the listener.
func serve(ctx context.Context, handler http.Handler, listener net.Listener, stderr io.Writer) error {
	h := sample.NewServer("samplemodel", handler, maxStall+20*time.Second, stderr)
	h.BaseContext = func(net.Listener) context.Context { return ctx }
	return sample.Serve(ctx, h, listener, sample.Grace)
}
