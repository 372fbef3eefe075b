package messages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/sse"
)

// reading is what became of a stream.
type reading struct {
	reply  *turns.Reply
	shown  string // what came before the first call, as it would be sent
	err    error
	writer *writer
	held   int                 // parts that were sent
	texts  map[*turns.Part]int // that have not ended of those, and how much of their texts was sent
}

// readStream reads a stream to its end.
func readStream(from io.Reader, o options) reading {
	r := newReader(o)
	out := reading{writer: &writer{requested: "claude-x"}, held: -1, texts: map[*turns.Part]int{}}
	out.writer.Turn(r.Reply())
	scanner := sse.Reader{Source: from, MaxBytes: 1 << 20, Last: func(data []byte) bool { return string(data) == done || isLast(data) }}
	var shown []byte
	for {
		name, data, err := scanner.Next()
		if errors.Is(err, sse.ErrEnd) {
			if out.err = r.End(); out.err == nil {
				out.reply = r.Reply()
			}
			break
		}
		var deltas []turns.Delta
		if err == nil {
			deltas, err = r.Event(name, data)
		}
		for i := range deltas {
			d := &deltas[i]
			if d.Is == turns.Start && d.Part.Kind == turns.Call && out.held < 0 {
				out.held = slices.Index(d.Answer.Parts, d.Part)
			}
			if out.held >= 0 {
				continue
			}
			var text []byte
			if d.Is == turns.Grown {
				text = d.Part.Text[d.From:]
			}
			if out.texts[d.Part] = 0; d.Part != nil {
				out.texts[d.Part] = len(d.Part.Text)
			}
			if d.Is == turns.Stop {
				delete(out.texts, d.Part)
			}
			shown = out.writer.Delta(shown, d, text)
		}
		if err != nil {
			out.err = err
			break
		}
	}
	out.shown = string(shown)
	return out
}

// readWhole reads a message.
func readWhole(body []byte, o options) (*turns.Reply, error) {
	r := newReader(o)
	err := r.Whole(body)
	return r.Reply(), err
}

// callsOf are the calls of the client.
func callsOf(r *turns.Reply) (calls []*turns.Part) {
	for _, p := range r.Answers[0].Parts {
		if p.Kind == turns.Call {
			calls = append(calls, p)
		}
	}
	return calls
}

// shownOf are parts that passed.
func shownOf(parts []*turns.Part) (shown []turns.Shown) {
	for _, p := range parts {
		shown = append(shown, turns.Shown{Part: p, Text: p.Text, Arguments: p.Call.Arguments})
	}
	return shown
}

// asSent is the stream that a client gets of a reply that passes, read back.
func (r reading) asSent(t testing.TB) string {
	t.Helper()
	w := *r.writer
	w.open = slices.Clone(w.open)
	b := []byte(r.shown)
	if r.held >= 0 {
		parts := r.reply.Answers[0].Parts
		shown := shownOf(parts[r.held:])
		for _, p := range slices.Backward(parts[:r.held]) {
			if sent, open := r.texts[p]; open {
				shown = append([]turns.Shown{{Part: p, Text: p.Text[sent:], Begun: true}}, shown...)
			}
		}
		b = w.Rest(b, r.reply.Answers[0], shown, true, true)
	}
	return string(w.Close(b, r.reply.Usage.Raw))
}

// whole is the reply as one message.
func whole(r *turns.Reply) []byte {
	w := &writer{requested: "claude-x"}
	return w.Whole(r, [][]turns.Shown{shownOf(r.Answers[0].Parts)}, r.Usage.Raw)
}

// describe writes a reply, to compare.
func describe(r *turns.Reply) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %d\n", r.ID, r.Model, r.Answers[0].Reason, r.Usage.Tokens)
	for _, p := range r.Answers[0].Parts {
		fmt.Fprintf(&b, "%s %d %q", p.Type, p.Kind, p.Text)
		if p.Call.ID != "" {
			fmt.Fprintf(&b, " %s %s %s %s", p.Call.ID, p.Call.Name, p.Call.Group, compact(p.Call.Arguments))
		}
		fmt.Fprintf(&b, " %s\n", compact(p.Raw))
	}
	return b.String()
}

// events frames lines of the form "name data" as a stream; a line without a space is an event
// of that type without other members.
func events(lines ...string) string {
	var b []byte
	for _, line := range lines {
		name, data, found := strings.Cut(line, " ")
		if !found {
			data = fmt.Sprintf(`{"type":%q}`, name)
		}
		b = sse.AppendEvent(b, name, []byte(data))
	}
	return string(b)
}

// Lines of streams for tests.
const (
	lineStart = `message_start {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],` +
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}`
	lineText    = `content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	lineHello   = `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	lineStop0   = `content_block_stop {"type":"content_block_stop","index":0}`
	lineTool0   = `content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"search","input":{}}}`
	lineTool1   = `content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"search","input":{}}}`
	lineArgs0   = `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}`
	lineArgs1   = `content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}`
	lineStop1   = `content_block_stop {"type":"content_block_stop","index":1}`
	lineToolUse = `message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}`
	lineEndTurn = `message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`
	lineStop    = `message_stop`
)

// pieces reads as many bytes at a time as cuts say, over and over.
type pieces struct {
	data []byte
	cuts []int
	at   int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := min(len(b), len(p.data))
	if len(p.cuts) > 0 {
		n = min(n, max(1, p.cuts[p.at%len(p.cuts)]))
		p.at++
	}
	copy(b, p.data[:n])
	p.data = p.data[n:]
	return n, nil
}

func streamOf(lines ...string) io.Reader { return bytes.NewReader([]byte(events(lines...))) }

// readDiscarding reads a stream, and drops what it shows.
func readDiscarding(from io.Reader) error {
	r := newReader(options{})
	scanner := sse.Reader{Source: from, MaxBytes: 1 << 20}
	for {
		name, data, err := scanner.Next()
		if errors.Is(err, sse.ErrEnd) {
			return r.End()
		}
		if err == nil {
			_, err = r.Event(name, data)
		}
		if err != nil {
			return err
		}
	}
}
