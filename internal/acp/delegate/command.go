package delegate

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
)

const (
	// cleanup bounds the requests that end a terminal.
	cleanup = 5 * time.Second
	// reserve is the share of a command's time that is kept for them: a tenth, at most cleanup.
	reserve = 10
	// maxOutput is how many bytes of output are kept where the request states none. As JSON they
	// may be six times as long, and are still less than the largest result by default.
	maxOutput = uint64(128 << 10)
)

// Call sends a request to a client and returns its result. Its errors are those of Client.
type Call func(ctx context.Context, method string, params any) (json.RawMessage, error)

// RunCommand runs a command to its end in a terminal of its own, which is always released. A
// command that has not ended shortly before the context's deadline is killed, and its output
// so far returned; so is one whose turn was cancelled. Without a limit in the request, the last
// 128 KiB of output are kept.
func RunCommand(ctx, turn context.Context, call Call, request wire.CreateTerminalRequest) (Command, error) {
	if request.OutputByteLimit == nil {
		most := maxOutput
		request.OutputByteLimit = &most
	}
	raw, err := call(ctx, wire.MethodTerminalCreate, request)
	if err != nil {
		return Command{}, err
	}
	created, err := wire.Read[wire.CreateTerminalResponse](raw)
	if err != nil {
		return Command{}, err
	}
	t := terminal{call, wire.TerminalRequest{SessionID: request.SessionID, TerminalID: created.TerminalID}}
	return t.run(ctx, turn)
}

// terminal is one that exists.
type terminal struct {
	call Call
	is   wire.TerminalRequest
}

func (t terminal) run(ctx, turn context.Context) (Command, error) {
	// The requests that end a terminal are sent also when the context has ended.
	after := context.WithoutCancel(ctx)
	defer t.end(after, wire.MethodTerminalRelease)
	var c Command
	if err := t.wait(ctx, turn); err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.end(after, wire.MethodTerminalKill)
			return c, err
		}
		c.Cancelled = turn.Err() != nil
		c.TimedOut = !c.Cancelled
		t.end(after, wire.MethodTerminalKill)
	}
	bounded, cancel := context.WithTimeout(after, cleanup)
	defer cancel()
	raw, err := t.call(bounded, wire.MethodTerminalOutput, t.is)
	if err == nil {
		c.Output, err = wire.Read[wire.TerminalOutputResponse](raw)
	}
	return c, err
}

// wait waits until the command ends or its turn is cancelled, for as long as leaves time to end the
// terminal.
func (t terminal) wait(ctx, turn context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(turn, stop)()
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		bounded, cancel := context.WithTimeout(ctx, left-min(left/reserve, cleanup))
		defer cancel()
		ctx = bounded
	}
	raw, err := t.call(ctx, wire.MethodTerminalWaitForExit, t.is)
	if err == nil {
		_, err = wire.Read[wire.TerminalExitStatus](raw)
	}
	return err
}

// end sends a request that ends the command or the terminal. Its error changes nothing: the
// command ran, and there is no other way to end it.
func (t terminal) end(ctx context.Context, method string) {
	bounded, cancel := context.WithTimeout(ctx, cleanup)
	defer cancel()
	_, _ = t.call(bounded, method, t.is)
}
