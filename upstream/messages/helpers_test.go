package messages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/sse"
)

// reading is what became of a stream.
type reading struct {
	reply *Reply
	shown string // the events that were returned, as they would be sent
	err   error
}

// readStream reads a stream to its end.
func readStream(from io.Reader, o Options) reading {
	s := NewStream(o)
	scanner := sse.Reader{Source: from, MaxBytes: 1 << 20, Last: func(data []byte) bool { return string(data) == done || IsLast(data) }}
	var (
		shown []byte
		out   reading
	)
	for {
		name, data, err := scanner.Next()
		if errors.Is(err, sse.ErrEnd) {
			out.reply, out.err = s.End()
			break
		}
		if err == nil {
			var events []Event
			events, err = s.Add(name, data)
			for i := range events {
				shown = AppendEvent(shown, &events[i], events[i].Index)
			}
		}
		if err != nil {
			out.err = err
			break
		}
	}
	out.shown = string(shown)
	return out
}

// asSent is the stream that a client gets of a reply that passes, read back.
func (r reading) asSent(t testing.TB) string {
	t.Helper()
	b := append(r.reply.AppendStart(nil), r.shown...)
	for i := r.reply.Shown; i < len(r.reply.Blocks); i++ {
		b = r.reply.Blocks[i].AppendEvents(b, i)
	}
	return string(r.reply.AppendEnd(b, r.reply.Usage.Raw))
}

// whole is the reply as one message.
func whole(r *Reply) []byte {
	var all []*Block
	for i := range r.Blocks {
		all = append(all, &r.Blocks[i])
	}
	return r.AppendMessage(nil, all, r.Usage.Raw)
}

// describe writes a reply, to compare.
func describe(r *Reply) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %d\n", r.ID, r.Model, r.StopReason, r.Usage.Tokens())
	for _, block := range r.Blocks {
		fmt.Fprintf(&b, "%s %d %q", block.Type, block.Kind, block.Text)
		if block.Call != nil {
			fmt.Fprintf(&b, " %s %s %s %s", block.Call.ID, block.Call.Name, block.Call.Caller, compact(block.Call.Input))
		}
		fmt.Fprintf(&b, " %s\n", compact(block.Raw))
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
	s := NewStream(Options{MaxBytes: 1 << 40})
	scanner := sse.Reader{Source: from, MaxBytes: 1 << 20}
	for {
		name, data, err := scanner.Next()
		if errors.Is(err, sse.ErrEnd) {
			_, err = s.End()
			return err
		}
		if err == nil {
			_, err = s.Add(name, data)
		}
		if err != nil {
			return err
		}
	}
}
