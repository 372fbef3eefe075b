package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/parser"
)

// Stream judges one completion that arrives in pieces. Text is released as soon
// as no later byte can refuse it; a call is judged when the completion has
// ended. A Stream is for one goroutine.
type Stream struct {
	decision *Decision
	parser   *parser.Stream
	sum      hash.Hash // over all that came
}

// Stream starts the judgement of a completion that will arrive in pieces. The
// inputs of the request are not looked at. Whoever may not ask at all is
// refused now, before a byte of text is released.
func (k *Kernel) Stream(ctx context.Context, request Request) (*Stream, error) {
	request.Inputs = []Input{{}}
	d := k.open(request)
	c := d.calls[0]
	c.stream = parser.NewStream(c.state.Output)
	if d.run(ctx, pipeline[:1], false) {
		d.note(ctx)
		return nil, c.refused
	}
	return &Stream{decision: d, parser: c.stream, sum: sha256.New()}, nil
}

// Write takes the next piece and returns the text that is released by it.
func (s *Stream) Write(p []byte) []byte {
	s.sum.Write(p)
	if c := s.decision.calls[0]; c.kernel.parts.Record == audit.Completion {
		room := max(parser.Window(c.state.Output)-len(c.input.Completion), 0)
		c.input.Completion = append(c.input.Completion, p[:min(len(p), room)]...)
	}
	return s.parser.Write(p)
}

// Refused tells whether the completion will be refused, whatever follows.
func (s *Stream) Refused() bool { return s.parser.Refused() }

// Close says that the completion has ended, cut or not, and judges it. The text
// of the report is what Write has not released.
func (s *Stream) Close(ctx context.Context, truncated bool) *Decision {
	c := s.decision.calls[0]
	c.input.Truncated, c.digest = truncated, hex.EncodeToString(s.sum.Sum(nil))
	s.decision.run(ctx, pipeline[1:], false)
	s.decision.note(ctx)
	return s.decision.close()
}
