// Package delegate is how a tool of type acp reaches the client of an ACP session: the face of
// the session puts its client into the context of a call, and engine/acp takes it from there.
// Faces and engines do not import each other, so that the words they share are here.
package delegate

import (
	"context"
	"errors"
	"fmt"

	"github.com/callgate/callgate/internal/acp/wire"
)

// Client is the client of one session. It sets the session's id in the requests, and sends them.
// Each method returns soon after its context ends.
//
// An error is a *Refused if the client has answered with an error, wraps ErrNotSent if nothing
// was sent, and is the context's if it ended first. After any other error the client may have
// done what was asked.
type Client interface {
	// Offers reports whether the client has said that it implements a method: one of
	// wire.MethodReadTextFile, MethodWriteTextFile and MethodTerminalCreate.
	Offers(method string) bool
	ReadTextFile(context.Context, wire.ReadTextFileRequest) (wire.ReadTextFileResponse, error)
	WriteTextFile(context.Context, wire.WriteTextFileRequest) error
	// RunCommand creates a terminal. The face says what becomes of it: its command runs to its
	// end (see RunCommand), or the terminal stays with the agent that asked for it.
	RunCommand(context.Context, wire.CreateTerminalRequest) (Command, error)
}

// Command is a command that a client was asked to run: ID of a terminal that remains, or Output
// of one that has ended and was released.
type Command struct {
	ID        string
	Output    wire.TerminalOutputResponse
	TimedOut  bool // it was killed at the end of its time, or of its context
	Cancelled bool // it was killed because its turn was cancelled
}

// Refused is an error that a client answered with.
type Refused struct {
	Code    int
	Message string // the client's text
}

// Error names the code and quotes the text.
func (r *Refused) Error() string {
	return fmt.Sprintf("the client answered with the error %d: %q", r.Code, r.Message)
}

// ErrNotSent is the error of a request that never reached the client.
var ErrNotSent = errors.New("the request was not sent to the client")

type (
	key     struct{}
	callKey struct{}
)

// WithClient returns a context in which tools of type acp run by a client.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// ClientOf returns the client of a context; nil if it has none.
func ClientOf(ctx context.Context) Client {
	c, _ := ctx.Value(key{}).(Client)
	return c
}

// WithCall returns a context in which a tool of type acp runs for a call of an id.
func WithCall(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, callKey{}, id)
}

// CallOf returns the id of the call of a context; empty if it has none.
func CallOf(ctx context.Context) string {
	id, _ := ctx.Value(callKey{}).(string)
	return id
}
