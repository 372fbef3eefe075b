package mcp

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
)

// timed is a connection that remembers until when it must be written.
type timed struct {
	*httptest.ResponseRecorder
	until []time.Time
}

func (c *timed) SetWriteDeadline(t time.Time) error {
	c.until = append(c.until, t)
	return nil
}

// TestTakeTime: each event has its time to be taken, and all that are sent in the end
// have one together: however a client takes them, it does not hold its place for long.
func TestTakeTime(t *testing.T) {
	conn := &timed{ResponseRecorder: httptest.NewRecorder()}
	c, _ := gin.CreateTestContext(conn)
	e := newEventStream(c)
	before := time.Now()
	for _, ending := range []bool{false, false, true, true} {
		if err := e.send([]byte(`{}`), ending); err != nil {
			t.Fatal(err)
		}
	}
	e.finish(nil, &response{result: object{}})
	if len(conn.until) != 3 {
		t.Fatalf("%d deadlines", len(conn.until))
	}
	for _, until := range conn.until {
		if until.Before(before.Add(writeTimeout)) || until.After(time.Now().Add(writeTimeout)) {
			t.Errorf("%v, from %v on", until, before)
		}
	}
	const event = "data: {}\n\n"
	if got := conn.Body.String(); got != event+event+event+event+"data: {\"jsonrpc\":\"2.0\",\"result\":{}}\n\n" {
		t.Errorf("%q", got)
	}
}
