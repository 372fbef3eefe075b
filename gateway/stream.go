package gateway

import (
	"bytes"
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
	began    bool      // some byte came that is no outer whitespace
	closed   bool
}

// Stream starts the judgement of a completion that will arrive in pieces. It does not read
// the inputs of the request. A caller that is not admitted is refused now, before a byte of
// text is released.
func (k *Kernel) Stream(ctx context.Context, request Request) (*Stream, error) {
	return k.stream(ctx, request, ModeCall, nil, false)
}

func (k *Kernel) stream(ctx context.Context, request Request, mode Mode, admission *Admission, textOnly bool) (*Stream, error) {
	request.Inputs = []Input{{TextOnly: textOnly}}
	d := k.open(request, mode, admission)
	c := d.calls[0]
	c.parsed.stream = parser.NewStream(c.output())
	if d.run(ctx, identify, false) {
		d.recordRest(ctx)
		d.report()
		return nil, c.refused
	}
	c.beginText()
	return &Stream{decision: d, parser: c.parsed.stream, sum: sha256.New()}, nil
}

// Write takes the next piece and returns the text that is released by it.
func (s *Stream) Write(p []byte) []byte {
	s.began = s.began || len(bytes.Trim(p, " \t\r\n")) > 0
	s.sum.Write(p)
	if c := s.decision.calls[0]; c.kernel.deps.RecordContent == audit.Completion {
		room := max(parser.Window(c.config.Output)-len(c.input.Completion), 0)
		c.input.Completion = append(c.input.Completion, p[:min(len(p), room)]...)
	}
	return s.release(s.parser.Write(p))
}

// Refused reports whether the completion will be refused, regardless of its rest.
func (s *Stream) Refused() bool { return s.parser.Refused() || s.denied() }

// Close says that the completion has ended, cut or not, and judges it. The text
// of its report is what Write has not released.
//
// calls are native calls that came beside the text: they are judged with it, all or none,
// and are cut if it is. The text has the first report, unless it is empty prose: then the
// calls are the whole answer.
func (s *Stream) Close(ctx context.Context, truncated bool, calls ...Input) *Decision {
	d := s.decision
	if s.closed {
		return d
	}
	s.closed = true
	c := d.calls[0]
	c.input.Truncated, c.digests.input = truncated, hex.EncodeToString(s.sum.Sum(nil))
	times := c.times
	if c.input.TextOnly && !s.began && len(calls) > 0 {
		d.calls = nil
	}
	for _, in := range calls {
		in.Truncated = in.Truncated || truncated
		d.add(in, times)
	}
	d.run(ctx, judge, false)
	return d.end(ctx)
}
