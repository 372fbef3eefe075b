package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
)

// waiting is a route whose requests stay until they are let go.
type waiting struct{ inside, leave chan struct{} }

func (w waiting) route(path string, pool server.Pool) server.Route {
	return server.Route{Method: http.MethodGet, Path: path, Pool: pool, Serve: func(*gin.Context, server.Request) {
		w.inside <- struct{}{}
		<-w.leave
	}}
}

// TestPools: how many of each pool are answered while others are saturated, and how
// many of these one caller may have.
func TestPools(t *testing.T) {
	for _, c := range []struct{ most, calls, reserved, streams int }{
		{1, 1, 1, 1}, {4, 4, 1, 4}, {5, 5, 1, 5}, {10, 10, 2, 10}, {100, 100, 20, 100},
	} {
		w := waiting{make(chan struct{}), make(chan struct{})}
		d := serverOf(io.Discard, func(o *server.Options) { o.MaxInFlight = c.most },
			w.route("/call", server.Calls), w.route("/reserved", server.Reserved), w.route("/stream", server.Streams))
		done := make(chan int)
		entered := 0
		// fillFor sends requests of somebody until one is refused, and counts the others.
		fillFor := func(path, caller string) int {
			for n := 0; ; n++ {
				code := make(chan int, 1)
				go func() {
					status := ask(d, http.MethodGet, path, nil, "Authorization", "Bearer "+caller).Code
					code <- status
					done <- status
				}()
				select {
				case <-w.inside:
					entered++
				case status := <-code:
					<-done
					if status != http.StatusServiceUnavailable {
						t.Fatalf("%s: %d", path, status)
					}
					return n
				}
			}
		}
		fill := func(path string) int {
			one := fillFor(path, "one")
			all := one + fillFor(path, "two") + fillFor(path, "three")
			if half := max(all/2, min(all, 1)); path != "/reserved" && one != half {
				t.Errorf("of %d of %s, one has %d", all, path, one)
			}
			return all
		}
		calls := fill("/call")
		reserved := fill("/reserved") // beside calls that saturate
		streams := fill("/stream")
		if calls != c.calls || reserved != c.reserved || streams != c.streams {
			t.Errorf("of %d: %d calls, %d reserved, %d streams", c.most, calls, reserved, streams)
		}
		if at := ask(d, http.MethodGet, "/", nil); at.Code != 200 || !strings.Contains(at.Body.String(), "/v1") || ask(d, http.MethodHead, "/", nil).Code != 200 {
			t.Errorf("the root: %d %s", at.Code, at.Body)
		}
		if d.InFlight() != entered || ask(d, http.MethodGet, "/healthz", nil).Code != 200 || ask(d, http.MethodHead, "/healthz", nil).Code != 200 || ask(d, http.MethodGet, "/readyz", nil).Code != 200 {
			t.Errorf("%d in flight of %d that entered", d.InFlight(), entered)
		}
		for range entered {
			w.leave <- struct{}{}
			if status := <-done; status != 200 {
				t.Errorf("one that had entered: %d", status)
			}
		}
		// The reserved pool takes what calls leave free, and calls never what is
		// reserved.
		if reserved := fill("/reserved"); reserved != c.reserved+c.calls {
			t.Errorf("of %d, without calls: %d reserved", c.most, reserved)
		}
		if calls := fill("/call"); calls != 0 {
			t.Errorf("%d calls beside reserved ones that saturate", calls)
		}
		close(w.leave)
		for range c.reserved + c.calls {
			<-done
		}
		if d.InFlight() != 0 {
			t.Errorf("%d are still in flight", d.InFlight())
		}
	}
}

// TestHeldBytesAreReserved: bodies of calls leave room for those that end calls.
func TestHeldBytesAreReserved(t *testing.T) {
	w := waiting{make(chan struct{}), make(chan struct{})}
	hold := w.route("/hold", server.Calls)
	hold.Method, hold.MaxBody = http.MethodPost, fixed(1000)
	end := server.Route{Method: http.MethodPost, Path: "/end", Pool: server.Reserved, Serve: echo, MaxBody: fixed(1000)}
	d := serverOf(io.Discard, func(o *server.Options) { o.MaxBodyBytes = 200 }, hold, end)
	send := func(caller, path string, n int) int {
		return ask(d, http.MethodPost, path, bytes.NewReader(bytes.Repeat([]byte(" "), n)), "Content-Type", "application/json", "Authorization", "Bearer "+caller).Code
	}
	held := make(chan int)
	for _, c := range []struct {
		principal, path string
		n, want         int // 0: it stays
	}{
		{"one", "/hold", 100, 0}, {"one", "/talk", 1, 503}, {"one", "/end", 20, 200}, {"one", "/end", 21, 503},
		{"two", "/talk", 100, 200}, {"two", "/talk", 101, 503}, {"two", "/hold", 100, 0},
		{"three", "/talk", 1, 503}, {"three", "/end", 40, 200}, {"three", "/end", 41, 503}, {"two", "/end", 20, 200}, {"two", "/end", 21, 503},
	} {
		if c.want == 0 {
			go func() { held <- send(c.principal, c.path, c.n) }()
			<-w.inside
		} else if got := send(c.principal, c.path, c.n); got != c.want {
			t.Errorf("%d bytes of %s to %s: %d, want %d", c.n, c.principal, c.path, got, c.want)
		}
	}
	close(w.leave)
	for range 2 {
		if got := <-held; got != 200 {
			t.Errorf("one that held bytes: %d", got)
		}
	}
	if w := ask(d, http.MethodPost, "/talk", strings.NewReader("hi"), "Content-Type", "application/json"); w.Code != 200 {
		t.Errorf("then: %d", w.Code)
	}
}

// TestDrainEndsStreams: a stream would hold the shutdown up; calls are answered to
// their end. Each answer says that it is the last of its connection.
func TestDrainEndsStreams(t *testing.T) {
	w := waiting{make(chan struct{}), make(chan struct{})}
	stream := server.Route{Method: http.MethodGet, Path: "/stream", Pool: server.Streams, Serve: func(c *gin.Context, _ server.Request) {
		w.inside <- struct{}{}
		<-c.Request.Context().Done()
		c.String(http.StatusOK, "ended")
	}}
	d := serverOf(io.Discard, nil, w.route("/call", server.Calls), stream)
	type answer struct{ path, text, connection string }
	answers := make(chan answer)
	for _, path := range []string{"/call", "/stream"} {
		go func() {
			r := ask(d, http.MethodGet, path, nil)
			answers <- answer{path, r.Body.String(), r.Header().Get("Connection")}
		}()
		<-w.inside
	}
	if r := ask(d, http.MethodGet, "/look/1", nil); r.Header().Get("Connection") != "" || d.Draining() {
		t.Errorf("before: Connection: %q, draining: %t", r.Header().Get("Connection"), d.Draining())
	}
	d.Drain()
	d.Drain() // is the same as once
	if a := <-answers; a.path != "/stream" || a.text != "ended" {
		t.Errorf("the first to end: %+v", a)
	}
	if r := ask(d, http.MethodGet, "/look/1", nil); r.Code != 200 || r.Header().Get("Connection") != "close" {
		t.Errorf("while draining: %d, Connection: %q", r.Code, r.Header().Get("Connection"))
	}
	if r := ask(d, http.MethodGet, "/readyz", nil); r.Code != 503 || d.InFlight() != 1 {
		t.Errorf("ready: %d, %d in flight", r.Code, d.InFlight())
	}
	w.leave <- struct{}{}
	<-answers
}

// TestPark: what waits for its client takes nothing from calls, takes its turn again
// when it has waited, and waits no longer than until the server drains.
func TestPark(t *testing.T) {
	waits, proceed := make(chan struct{}), make(chan struct{})
	var d *server.Server
	parked := server.Route{Method: http.MethodGet, Path: "/aside", Serve: func(c *gin.Context, _ server.Request) {
		output := "ended"
		refused := d.Park(c, func(ctx context.Context) {
			waits <- struct{}{}
			select {
			case <-proceed:
				output = "went on"
			case <-ctx.Done():
			}
		})
		if refused != nil {
			output += ", " + string(refused.Code)
		}
		c.String(http.StatusOK, output)
	}}
	w := waiting{make(chan struct{}), make(chan struct{})}
	d = serverOf(io.Discard, func(o *server.Options) { o.MaxInFlight = 2 }, parked, w.route("/call", server.Calls))
	answers, calls := make(chan string, 8), make(chan int, 8)
	begin := func(caller string) {
		go func() {
			answers <- ask(d, http.MethodGet, "/aside", nil, "Authorization", "Bearer "+caller).Body.String()
		}()
	}
	call := func(principal string) {
		go func() { calls <- ask(d, http.MethodGet, "/call", nil, "Authorization", "Bearer "+principal).Code }()
		<-w.inside
	}
	begin("one")
	<-waits
	// One caller may wait once, so that another can.
	begin("one")
	if got := <-answers; got != "ended, overloaded" {
		t.Errorf("the second: %s", got)
	}
	begin("two")
	<-waits
	// No third has room to wait, and calls have all the room of theirs.
	begin("three")
	if got := <-answers; got != "ended, overloaded" {
		t.Errorf("the third: %s", got)
	}
	call("three")
	call("four")
	if d.InFlight() != 4 || ask(d, http.MethodGet, "/call", nil).Code != http.StatusServiceUnavailable {
		t.Errorf("%d in flight", d.InFlight())
	}
	// One that has waited takes the turn of a call that has ended, and a call that comes
	// then does not.
	proceed <- struct{}{}
	select {
	case got := <-answers:
		t.Errorf("it went on without a turn: %s", got)
	default:
	}
	w.leave <- struct{}{}
	if got := <-answers; got != "went on" {
		t.Errorf("the first: %s", got)
	}
	call("five")
	d.Drain()
	if got := <-answers; got != "ended, overloaded" {
		t.Errorf("the last: %s", got)
	}
	close(w.leave)
	for range 3 {
		if status := <-calls; status != 200 {
			t.Errorf("a call: %d", status)
		}
	}
	if d.InFlight() != 0 {
		t.Errorf("%d are still in flight", d.InFlight())
	}
}

// TestEnds: what brings a call what it waits for finds room where calls have taken all
// of theirs, as much as is reserved; calls find none of that.
func TestEnds(t *testing.T) {
	w := waiting{make(chan struct{}), make(chan struct{})}
	route := w.route("/call", server.Calls)
	route.Completes = func(a server.Request) bool { return a.User == "ends" }
	d := serverOf(io.Discard, func(o *server.Options) { o.MaxInFlight = 5 }, route)
	answers := make(chan int, 8)
	callers := 0
	enter := func(user string) {
		callers++
		caller := fmt.Sprint("Bearer ", callers)
		go func() {
			answers <- ask(d, http.MethodGet, "/call", nil, "Callgate-User", user, "Authorization", caller).Code
		}()
		<-w.inside
	}
	for range 5 {
		enter("calls")
	}
	if status := ask(d, http.MethodGet, "/call", nil, "Callgate-User", "calls").Code; status != http.StatusServiceUnavailable {
		t.Errorf("a sixth call: %d", status)
	}
	enter("ends")
	for _, user := range []string{"calls", "ends"} {
		if status := ask(d, http.MethodGet, "/call", nil, "Callgate-User", user).Code; status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", user, status)
		}
	}
	close(w.leave)
	for range 6 {
		if status := <-answers; status != 200 {
			t.Errorf("one that had entered: %d", status)
		}
	}
	if d.InFlight() != 0 {
		t.Errorf("%d are still in flight", d.InFlight())
	}
}

// TestParkOfAClientThatLeft: a request whose client left while it waited for its turn
// is canceled, and does not count as one that was too much.
func TestParkOfAClientThatLeft(t *testing.T) {
	ctx, disconnect := context.WithCancel(t.Context())
	metrics := &shedding{}
	var d *server.Server
	w := waiting{make(chan struct{}), make(chan struct{})}
	parked := server.Route{Method: http.MethodGet, Path: "/aside", Serve: func(c *gin.Context, _ server.Request) {
		refused := d.Park(c, func(context.Context) {
			go ask(d, http.MethodGet, "/call", nil) // takes the only turn
			<-w.inside
			disconnect()
		})
		c.String(http.StatusOK, "%v", refused)
	}}
	d = serverOf(io.Discard, func(o *server.Options) { o.MaxInFlight, o.Metrics = 1, metrics }, parked, w.route("/call", server.Calls))
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/aside", nil).WithContext(ctx))
	close(w.leave)
	if got := answer.Body.String(); !strings.Contains(got, "canceled") || metrics.shed.Load() != 0 {
		t.Errorf("answered %s, %d were too much", got, metrics.shed.Load())
	}
}

// shedding counts requests that were refused as overloaded.
type shedding struct{ shed atomic.Int64 }

func (*shedding) Route(string) (func(), func(int)) { return func() {}, func(int) {} }
func (s *shedding) Shed()                          { s.shed.Add(1) }
