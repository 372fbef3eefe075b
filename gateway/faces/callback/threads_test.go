package callback_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Messages of one call are taken in one after the other, however they arrive: of many
// answers at the same time one is the call's, and the others find it answered.
func TestTIP20MessagesOfOneCall(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	const many = 40
	codes := make([]int, many)
	var all sync.WaitGroup
	for i := range many {
		body := c.result("text", fmt.Sprintf(`{"n":%d}`, i))
		all.Go(func() { codes[i] = w.post(c.token, body).Code })
	}
	all.Wait()
	first := -1
	for i, code := range codes {
		switch {
		case code == http.StatusOK && first < 0:
			first = i
		case code != http.StatusNotFound:
			t.Errorf("answer %d: %d, after answer %d was taken", i, code, first)
		}
	}
	if got, want := c.output(), fmt.Sprintf(`{"n":%d}`, first); got != want {
		t.Errorf("found %s; expected %s", got, want)
	}
	if ends := w.Journal.Find(c.id, func(r audit.Record) bool { return r.Event == audit.Ending }); len(ends) != 1 {
		t.Errorf("%d outcomes are written down", len(ends))
	}
}

// Messages of two calls of one thread are taken in one after the other, and those of another
// thread, or of another call without any, meanwhile.
func TestTIP20CallsOfAThreadWait(t *testing.T) {
	w := newWorld(t)
	first, second := w.begin("later.do", "t"), w.begin("later.do", "t")
	if first.group != "t" || second.group != "t" || first.id == second.id {
		t.Fatalf("%+v, %+v", first, second)
	}
	others := []waiting{w.begin("later.do", "other"), w.begin("later.do", ""), w.begin("later.do", "")}
	// While the first is taken in, 64 others may wait: a message beyond these is refused, and
	// the first two answers are such refusals unless a message did not wait.
	const posted = 66
	answers := make(chan error, posted)
	w.calls.once("before Finish", func() {
		_, thread, err := w.Executor.CallOwner(context.Background(), second.id)
		if err != nil {
			t.Error(err)
		}
		for range posted {
			go func() {
				p := calls.CallbackMessage{CallID: second.id, ID: second.id, Group: "t", Digest: "d", Thread: thread}
				answers <- w.Executor.Complete(context.Background(), p, calls.CallbackResult{Output: tool.Result{Body: []byte(`{"n":2}`), JSON: true}})
			}()
		}
		for range 2 {
			var refused *refusal.Error
			if err := <-answers; !errors.As(err, &refused) || refused.Code != refusal.Overloaded {
				t.Errorf("a message did not wait: %v", err)
			}
		}
		for _, other := range others {
			other.says(200, other.result("text", `{"n":3}`))
		}
		second.pending()
	})
	first.says(200, first.result("text", `{"n":1}`))
	for range posted - 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if one, two := first.output(), second.output(); one != `{"n":1}` || two != `{"n":2}` {
		t.Errorf("found %s, %s", one, two)
	}
}
