package upstream

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
)

// TestAnswersTogetherAreBounded: what all exchanges hold of answers is bounded, and
// what one has held is there for the next.
func TestAnswersTogetherAreBounded(t *testing.T) {
	const room = 10_000
	long := make(chan bool)
	answer := func(n int) string {
		return `{"choices":[{"index":0,"message":{"content":"` + strings.Repeat("a", n) + `"}}]}`
	}
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/half") {
			_, _ = io.WriteString(w, answer(room)[:room/2])
			w.(http.Flusher).Flush()
			long <- true
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, answer(room*3/4))
	})
	c := newClient(t, Options{MaxBufferedBytes: room})
	send := func(ctx context.Context, path string) refusal.Code {
		_, err := post(ctx, c, routeTo(t, definition(url+path)), []byte(`{}`))
		return code(t, err)
	}
	if got := send(t.Context(), ""); got != "" {
		t.Errorf("alone it is %s", got)
	}
	ctx, disconnect := context.WithCancel(t.Context())
	left := make(chan refusal.Code)
	go func() { left <- send(ctx, "/half") }()
	<-long
	for from := time.Now(); c.budget.used.Load() < room/2; time.Sleep(time.Millisecond) {
		if time.Since(from) > patient {
			t.Error("what was sent is not counted")
			break
		}
	}
	if got := send(t.Context(), ""); got != refusal.Overloaded {
		t.Errorf("beside another it is %q", got)
	}
	disconnect()
	<-left
	if now := c.budget.used.Load(); now != 0 {
		t.Errorf("%d bytes are held by nobody", now)
	}
	if got := send(t.Context(), ""); got != "" {
		t.Errorf("alone again it is %s", got)
	}
}

// TestHeldTogetherIsBounded is that for streams whose bytes a reader of another package holds.
func TestHeldTogetherIsBounded(t *testing.T) {
	c := newClient(t, Options{MaxBufferedBytes: 1000})
	one, other := c.Hold(), c.Hold()
	for i, step := range []struct {
		of    *Reservation
		bytes int
		want  refusal.Code
	}{{one, 600, ""}, {other, 400, ""}, {other, 401, refusal.Overloaded}, {one, 500, ""}, {other, 500, ""}, {one, 0, ""}, {other, 1000, ""}} {
		if got := code(t, step.of.Set(step.bytes)); got != step.want {
			t.Errorf("step %d: found %q; expected %q", i, got, step.want)
		}
	}
	for range 2 {
		one.Release()
		other.Release()
	}
	if now := c.budget.used.Load(); now != 0 {
		t.Errorf("%d bytes are held by nobody", now)
	}
}
