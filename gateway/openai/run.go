package openai

import (
	"crypto/sha256"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// run is one request: the turns of the model until one is the answer.
type run struct {
	face         *Face
	request      *request
	admission    *gateway.Admission
	route        *upstream.Route
	mode         gateway.Mode
	offer        offer
	choice       toolChoice // of the next turn
	conversation conversation
	stream       *eventStream // of a stream; nil where the answer is one body
	textBuffer   []byte       // of the piece that a stream is at

	usage        usage
	steps        int // turns whose calls were executed
	repairs      int // refused completions in a row
	refusedCalls map[refusedCall]int
	callID       string // the id of the last judgement, for the header
}

// refusedCall identifies equal refused calls.
type refusedCall struct {
	tool      string
	arguments [sha256.Size]byte
	code      refusal.Code
}

// maxEqualRefusals is how many equal refusals end a run.
const maxEqualRefusals = 3

// errWallTime is the cause of a run that took longer than its wall time.
var errWallTime = errors.New("the run has taken its time")

// boundReached ends a run that has reached a bound.
func (r *run) boundReached(message string) *failure {
	return &failure{refused: refusal.New(refusal.BoundReached, message)}
}
