package openai

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// writeTime is how long an application may take to take what it is sent.
const writeTime = 30 * time.Second

// maxHeld is how much of a stream is held back while more of it is at hand: with
// one more piece, what one write to the connection takes (4 KiB in net/http).
const maxHeld = 3<<10 + 512

// sink is the stream to the application. It is for one goroutine.
type sink struct {
	c     *gin.Context
	run   *run
	begun bool // the head is out, with status 200

	until  time.Time    // when the application must have taken what it is sent
	names  []byte       // what every chunk begins with; from the first turn that shows something
	head   []byte       // names, and what stands between them and the choices
	roles  map[int]bool // choices whose role was said
	buffer []byte
}

// begin sends the head of the stream.
func (s *sink) begin() {
	if s.begun {
		return
	}
	s.begun = true
	s.run.head(s.c)
	s.c.Header("Content-Type", "text/event-stream; charset=utf-8")
	s.c.Header("Cache-Control", "no-cache")
	s.c.Header("X-Accel-Buffering", "no") // proxies that would hold events back
	s.c.Status(http.StatusOK)
}

// send writes what is in the buffer. An application that is gone is noticed
// elsewhere: by the end of the request's context.
func (s *sink) send() {
	s.begin()
	// A deadline costs more than what is written: it stands for a second or so.
	if until := time.Now().Add(writeTime); until.Sub(s.until) > time.Second {
		// A connection that cannot bear a deadline is one that a test made.
		_ = http.NewResponseController(s.c.Writer).SetWriteDeadline(until)
		s.until = until
	}
	_, _ = s.c.Writer.Write(wrapper.Escape(s.buffer))
	s.c.Writer.Flush()
	s.buffer = s.buffer[:0]
}

// flush sends what is in the buffer, if anything is.
func (s *sink) flush() {
	if len(s.buffer) > 0 {
		s.send()
	}
}

// comment sends a line that readers of events pass over.
func (s *sink) comment(text string) {
	s.buffer = append(append(append(s.buffer, ": "...), text...), "\n\n"...)
	s.send()
}

// waiting does what takes long, and sends a comment again and again meanwhile.
func (s *sink) waiting(text string, do func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errBrokenOff
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: a panic of type %T", errBrokenOff, p)
			}
			done <- err
		}()
		err = do()
	}()
	beat := time.NewTicker(s.run.face.options.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-beat.C:
			s.comment(text)
		}
	}
}

// origin is where what is shown comes from: a whole completion, or a chunk.
type origin struct {
	id, model string
	created   int64
	extra     upstream.Extra
}

// begins settles what every chunk begins with.
func (s *sink) begins(from origin) {
	if s.names != nil {
		return
	}
	b := quote([]byte(`data: {"id":`), from.id)
	b = strconv.AppendInt(append(b, `,"object":"chat.completion.chunk","created":`...), from.created, 10)
	b = quote(append(b, `,"model":`...), s.run.modelName(from.model))
	s.names = pickWhere(b, from.extra, passedWords, word)
	s.roles = map[int]bool{}
	s.beside(nil)
}

// beside puts members of a whole answer into the chunks that follow; nil takes them
// out.
func (s *sink) beside(x upstream.Extra) {
	s.head = append(pick(slices.Clip(s.names), x, passedBeside), `,"choices":[`...)
}

// open starts a chunk of a choice.
func (s *sink) open(from origin, index int) {
	s.begins(from)
	s.buffer = strconv.AppendInt(append(append(s.buffer, s.head...), `{"index":`...), int64(index), 10)
	s.buffer = append(s.buffer, `,"delta":{`...)
	if !s.roles[index] {
		s.roles[index] = true
		s.buffer = append(s.buffer, `"role":"assistant",`...)
	}
}

// end ends a chunk; what was added to its delta ends in a comma.
func (s *sink) end(logprobs []byte, finish string) {
	if n := len(s.buffer); s.buffer[n-1] == ',' {
		s.buffer = s.buffer[:n-1]
	}
	s.buffer = append(s.buffer, '}')
	if logprobs != nil {
		s.buffer = append(append(s.buffer, `,"logprobs":`...), logprobs...)
	}
	s.buffer = append(s.buffer, `,"finish_reason":`...)
	if finish == "" {
		s.buffer = append(s.buffer, "null"...)
	} else {
		s.buffer = quote(s.buffer, finish)
	}
	s.buffer = append(s.buffer, "}]}\n\n"...)
}

// text shows a piece of the content.
func (s *sink) text(from origin, index int, text, logprobs []byte) {
	s.open(from, index)
	s.buffer = append(quote(append(s.buffer, `"content":`...), text), ',')
	s.end(logprobs, "")
}

// members shows members of a message, each behind a comma, if there is any.
func (s *sink) members(from origin, index int, picked []byte) {
	if len(picked) == 0 {
		return
	}
	s.open(from, index)
	s.buffer = append(append(s.buffer, picked[1:]...), ',')
	s.end(nil, "")
}

// finish shows what of a turn was not shown yet, and ends the stream.
func (s *sink) finish(t *turn) {
	s.begin()
	for i := range t.judged {
		s.choice(t, &t.judged[i], i == len(t.judged)-1)
	}
	if usage := s.run.usage.json(); usage != nil && s.run.request.usage {
		s.buffer = append(append(s.buffer, s.head...), `],"usage":`...)
		s.buffer = append(append(s.buffer, usage...), "}\n\n"...)
	}
	s.buffer = append(s.buffer, "data: [DONE]\n\n"...)
	s.send()
}

// choice shows the rest of a choice: its text, its calls, and why it ended. What belongs
// to the whole answer stands in the chunk that ends the last choice.
func (s *sink) choice(t *turn, j *judged, last bool) {
	from := origin{t.ID, t.Model, t.Created, t.Extra}
	s.begins(from)
	if j.whole {
		s.members(from, j.Index, s.run.thoughts(nil, j.Message.Extra))
	}
	content, calls, finish := s.run.show(j)
	switch {
	case j.released():
		if rest := j.decision.Reports[0].Text; len(rest) > 0 {
			s.text(from, j.Index, rest, nil)
		}
	case content != nil:
		s.text(from, j.Index, []byte(*content), nil)
	}
	if m := &j.Message; m.Refusal != nil {
		s.open(from, j.Index)
		s.buffer = append(quote(append(s.buffer, `"refusal":`...), *m.Refusal), ',')
		s.end(nil, "")
	}
	s.members(from, j.Index, s.run.beside(nil, j, content))
	for i, call := range calls {
		s.open(from, j.Index)
		s.buffer = append(append(append(s.buffer, `"tool_calls":[`...), toolCall(i, call.id, call.name, call.arguments, call.extra)...), "],"...)
		s.end(nil, "")
	}
	if last {
		s.beside(t.Extra)
	}
	s.open(from, j.Index)
	s.end(nil, finish)
	s.beside(nil)
}

// fail ends a stream that has begun, by an error event. There is no [DONE]
// behind it.
func (s *sink) fail(f *failure) {
	if f.refused != nil {
		server.LogRefusal(s.c, f.refused)
	}
	s.buffer = append(append(append(s.buffer, "data: "...), f.body()...), "\n\n"...)
	s.send()
}

// clientLeft is the refusal of a run whose application has left. One that says so
// already stays as it is.
func clientLeft(err error) error {
	var refused *refusal.Error
	if errors.As(err, &refused) && refused.Code == refusal.Canceled {
		return err
	}
	return refusal.New(refusal.Canceled, "The application left before the model had answered, so the run was given up.").WithCause(err)
}
