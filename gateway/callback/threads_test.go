package callback_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/callgate/callgate/audit"
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

// Not promised: the order of messages of two calls of one thread. While one is taken in,
// another call's is, and the second call may end first.
func TestTIP20CallsOfAThreadDoNotWait(t *testing.T) {
	w := newWorld(t)
	first, second := w.begin("later.do", "t"), w.begin("later.do", "t")
	if first.group != "t" || second.group != "t" || first.id == second.id {
		t.Fatalf("%+v, %+v", first, second)
	}
	meanwhile := false
	w.calls.once("after Get of anyone", func() {
		meanwhile = true
		second.says(200, second.result("text", `{"n":2}`))
		if got := second.output(); got != `{"n":2}` {
			t.Errorf("found %s", got)
		}
		first.pending()
	})
	first.says(200, first.result("text", `{"n":1}`))
	if got := first.output(); got != `{"n":1}` || !meanwhile {
		t.Errorf("found %s, %v", got, meanwhile)
	}
}
