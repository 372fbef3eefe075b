package delegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
)

// terminals answers the requests of one terminal, and keeps their methods.
type terminals struct {
	methods []string
	answers map[string]string // by method; absent is {}
	errors  map[string]error
	hangs   string // the method that is never answered
	limit   uint64 // of the output
}

func (f *terminals) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	f.methods = append(f.methods, method)
	if r, ok := params.(wire.CreateTerminalRequest); ok {
		f.limit = *r.OutputByteLimit
	}
	if method == f.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if r, ok := params.(wire.TerminalRequest); ok && (r.SessionID != "s" || r.TerminalID != "t") {
		return nil, &delegate.Refused{Code: wire.CodeNotFound, Message: "another terminal"}
	}
	if err := f.errors[method]; err != nil {
		return nil, err
	}
	if answer, ok := f.answers[method]; ok {
		return json.RawMessage(answer), nil
	}
	return json.RawMessage(`{}`), nil
}

const (
	create, wait, output, kill, release = wire.MethodTerminalCreate, wire.MethodTerminalWaitForExit, wire.MethodTerminalOutput, wire.MethodTerminalKill, wire.MethodTerminalRelease
)

// TestACP73Timeout: a terminal is created, waited for, and released; at the end of its time its
// command is killed first. TestACP72Release: it is released in every case.
func TestACP73Timeout(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		client  terminals
		timeout time.Duration
		methods []string
		timed   bool
		fails   bool
	}{
		"ends":              {methods: []string{create, wait, output, release}},
		"is not created":    {client: terminals{errors: map[string]error{create: gone}}, methods: []string{create}, fails: true},
		"has no id":         {client: terminals{answers: map[string]string{create: `{}`}}, methods: []string{create}, fails: true},
		"hangs":             {client: terminals{hangs: wait}, timeout: 50 * time.Millisecond, methods: []string{create, wait, kill, output, release}, timed: true},
		"cannot be awaited": {client: terminals{errors: map[string]error{wait: gone}}, methods: []string{create, wait, kill, release}, fails: true},
		"ends in nonsense":  {client: terminals{answers: map[string]string{create: `{"terminalId":"t"}`, wait: `[]`}}, methods: []string{create, wait, kill, release}, fails: true},
		"has no output":     {client: terminals{errors: map[string]error{output: gone}}, methods: []string{create, wait, output, release}, fails: true},
		"is not released":   {client: terminals{errors: map[string]error{release: gone}}, methods: []string{create, wait, output, release}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.client.answers == nil {
				c.client.answers = map[string]string{create: `{"terminalId":"t"}`}
			}
			c.client.answers[output] = `{"output":"o","truncated":true,"exitStatus":{"exitCode":3}}`
			ctx, cancel := context.WithTimeout(t.Context(), max(c.timeout, 0))
			defer cancel()
			if c.timeout == 0 {
				ctx = t.Context()
			}
			got, err := delegate.RunCommand(ctx, t.Context(), c.client.call, wire.CreateTerminalRequest{SessionID: "s", Command: "c"})
			if (err != nil) != c.fails || !slices.Equal(c.client.methods, c.methods) {
				t.Errorf("%v, %q; expected %q", err, c.client.methods, c.methods)
			}
			if !c.fails && (got.Output.Output != "o" || !got.Output.Truncated || got.TimedOut != c.timed || *got.Output.ExitStatus.ExitCode != 3) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestCancelledCommand: the end of the context kills the command, and the terminal is released.
func TestCancelledCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := terminals{hangs: wait, answers: map[string]string{create: `{"terminalId":"t"}`, output: `{"output":"","truncated":false}`}}
	cancelled := func(c context.Context, method string, params any) (json.RawMessage, error) {
		if method == wait {
			cancel()
		}
		return client.call(c, method, params)
	}
	if got, err := delegate.RunCommand(ctx, t.Context(), cancelled, wire.CreateTerminalRequest{SessionID: "s"}); err != nil || !got.TimedOut {
		t.Errorf("%+v, %v", got, err)
	}
	if want := []string{create, wait, kill, output, release}; !slices.Equal(client.methods, want) {
		t.Errorf("%q; expected %q", client.methods, want)
	}
}

// TestCancelledTurn: the end of the turn kills the command at once, although its call has time left,
// and the terminal is released; also where the turn ends while the terminal is created.
func TestCancelledTurn(t *testing.T) {
	for _, at := range []string{create, wait} {
		turn, cancel := context.WithCancel(t.Context())
		client := terminals{hangs: wait, answers: map[string]string{create: `{"terminalId":"t"}`, output: `{"output":"so far","truncated":false}`}}
		got, err := delegate.RunCommand(t.Context(), turn, func(c context.Context, method string, params any) (json.RawMessage, error) {
			if method == at {
				cancel()
			}
			return client.call(c, method, params)
		}, wire.CreateTerminalRequest{SessionID: "s"})
		if err != nil || !got.Cancelled || got.TimedOut || got.Output.Output != "so far" {
			t.Errorf("%s: %+v, %v", at, got, err)
		}
		if want := []string{create, wait, kill, output, release}; !slices.Equal(client.methods, want) {
			t.Errorf("%s: %q; expected %q", at, client.methods, want)
		}
	}
}

// TestOutputLimit: the output of a command is bounded, by the request or without it.
func TestOutputLimit(t *testing.T) {
	own := uint64(7)
	for _, c := range []struct {
		asked *uint64
		limit uint64
	}{{nil, 128 << 10}, {&own, 7}} {
		client := terminals{errors: map[string]error{create: errors.New("no")}}
		_, _ = delegate.RunCommand(t.Context(), t.Context(), client.call, wire.CreateTerminalRequest{OutputByteLimit: c.asked})
		if client.limit != c.limit {
			t.Errorf("%d; expected %d", client.limit, c.limit)
		}
	}
}

// TestClientOf: a context has the client that it was given, also without its end.
func TestClientOf(t *testing.T) {
	if delegate.ClientOf(t.Context()) != nil {
		t.Error("a context without a client has one")
	}
	var c delegate.Client = struct{ delegate.Client }{}
	ctx, cancel := context.WithCancel(delegate.WithClient(t.Context(), c))
	cancel()
	if delegate.ClientOf(context.WithoutCancel(ctx)) != c {
		t.Error("the client is lost")
	}
}
