package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair is two connections with each other, which run until the test ends.
func pair(t *testing.T, a, b Options) (*Conn, *Conn) {
	t.Helper()
	fromA, outA := io.Pipe()
	fromB, outB := io.Pipe()
	a.In, a.Out, b.In, b.Out = fromB, outA, fromA, outB
	left, right := New(a), New(b)
	var runs sync.WaitGroup
	for conn, out := range map[*Conn]*io.PipeWriter{left: outA, right: outB} {
		runs.Go(func() {
			if err := conn.Run(t.Context()); err != nil {
				t.Error(err)
			}
			out.Close()
		})
	}
	t.Cleanup(runs.Wait) // the context of a test ends before
	return left, right
}

// TestPairs: between two that ask each other everything at once, within answers too, and answer in any
// order, each call has its own answer.
func TestPairs(t *testing.T) {
	for seed := range uint64(4) {
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(seed, 18))
		chance := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		type params struct {
			N    int    `json:"n"`
			Deep int    `json:"deep"`
			Side string `json:"side"`
		}
		var left, right *Conn
		ready := make(chan struct{})
		ask := func(ctx context.Context, to *Conn, p params) error {
			result, err := to.Call(ctx, "ask", p)
			var failed *Error
			if errors.As(err, &failed) && p.N%5 == 0 && failed.Code == p.N && string(failed.Data.(json.RawMessage)) == fmt.Sprintf("%q", p.Side) {
				return nil
			}
			if want := fmt.Sprintf(`{"n":%d,"side":%q}`, p.N, p.Side); err != nil || p.N%5 == 0 || string(result) != want {
				return fmt.Errorf("%+v: %s, %w", p, result, err)
			}
			return nil
		}
		handle := func(other func() *Conn) func(context.Context, *Message) (any, *Error) {
			return func(ctx context.Context, m *Message) (any, *Error) {
				<-ready
				var p params
				if err := json.Unmarshal(m.Params, &p); err != nil {
					return nil, Errorf(CodeParams, "%v", err)
				}
				for range chance(10) {
					time.Sleep(time.Microsecond)
				}
				if p.Deep > 0 {
					if err := ask(ctx, other(), params{N: p.N + 1, Deep: p.Deep - 1, Side: p.Side + "'"}); err != nil {
						return nil, Errorf(CodeInternal, "%v", err)
					}
				}
				if p.N%5 == 0 {
					return nil, &Error{Code: p.N, Data: p.Side}
				}
				return map[string]any{"n": p.N, "side": p.Side}, nil
			}
		}
		unsolicited := func(_ context.Context, m *Message, _ *Error) { t.Errorf("an answer to nothing: %s", m.ID) }
		left, right = pair(t,
			Options{Handle: handle(func() *Conn { return left }), MaxConcurrent: 1000, Unsolicited: unsolicited},
			Options{Handle: handle(func() *Conn { return right }), MaxConcurrent: 1000, Unsolicited: unsolicited})
		close(ready)
		var calls sync.WaitGroup
		for i := range 100 {
			for side, conn := range map[string]*Conn{"left": left, "right": right} {
				calls.Go(func() {
					if err := ask(t.Context(), conn, params{N: i, Deep: chance(4), Side: side}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		calls.Wait()
	}
}

// TestPeerNeverReads: a peer that sends requests and never reads the answers ends the connection in
// time, and holds a bounded number of them.
func TestPeerNeverReads(t *testing.T) {
	in, toConn := io.Pipe()
	neverRead, out := io.Pipe()
	defer neverRead.Close()
	defer in.Close()
	var mu sync.Mutex
	handled := 0
	c := New(Options{In: in, Out: out, MaxConcurrent: 8, WriteTimeout: 200 * time.Millisecond, Handle: func(context.Context, *Message) (any, *Error) {
		mu.Lock()
		defer mu.Unlock()
		handled++
		return nil, nil
	}})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context()) }()
	sent := make(chan int, 1)
	go func() {
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(toConn, `{"jsonrpc":"2.0","id":%d,"method":"a"}`+"\n", i); err != nil {
				sent <- i
				return
			}
		}
	}()
	called := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), "ask", nil)
		called <- err
	}()
	for what, from := range map[string]chan error{"Run": ended, "Call": called} {
		select {
		case err := <-from:
			if !errors.Is(err, ErrNotReading) && !errors.Is(err, ErrEnded) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s does not return", what)
		}
	}
	in.Close()
	if n := <-sent; n > 5000 || handled > 8*2 {
		t.Errorf("%d requests were taken, and %d handled", n, handled)
	}
}

// TestContextEnds: Run returns although neither side does anything, and handlers end.
func TestContextEnds(t *testing.T) {
	for _, drain := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		handling, proceed := make(chan struct{}), make(chan struct{})
		p := start(t, ctx, Options{Drain: drain, Handle: func(ctx context.Context, m *Message) (any, *Error) {
			close(handling)
			if !drain {
				<-ctx.Done()
				return "ended", nil
			}
			<-proceed
			if ctx.Err() != nil {
				return "cut", nil //nolint:nilerr // the answer says it
			}
			return "whole", nil
		}})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
		<-handling
		cancel()
		<-p.conn.Ended()
		close(proceed)
		if got := p.next(); drain && !strings.Contains(got, "whole") || !drain && !strings.Contains(got, "ended") {
			t.Error(got)
		}
		if err := p.end(); err != nil {
			t.Error(err)
		}
		// A read was left behind: its line is not handled.
		p.write(`{"jsonrpc":"2.0","id":2,"method":"a"}`)
	}
}

// interrupted is a reader that fails when a context ends.
type interrupted struct{ ctx context.Context }

func (r interrupted) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, errors.New("interrupted")
}

// TestReaderEndsWithContext: that a reader fails because the context has ended is no error.
func TestReaderEndsWithContext(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- New(Options{In: interrupted{ctx}, Out: io.Discard, Handle: echo}).Run(ctx) }()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// TestPeerDies: a peer that dies in the middle of a line, or whose pipe breaks.
func TestPeerDies(t *testing.T) {
	p := start(t, t.Context(), Options{Handle: func(ctx context.Context, m *Message) (any, *Error) { <-ctx.Done(); return nil, nil }})
	call, err := p.started()
	if err != nil {
		t.Fatal(err)
	}
	p.write(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
	go func() {
		io.WriteString(p.in, `{"jsonrpc":"2.0","id":1,"resu`)
		p.in.Close()
	}()
	if got := p.next(); !strings.Contains(got, `"id":null,"error":{"code":-32700`) {
		t.Error(got)
	}
	p.next()
	if _, err := call.Wait(t.Context()); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	p = start(t, t.Context(), Options{Handle: echo})
	p.in.CloseWithError(errors.New("broken"))
	if err := p.end(); err == nil || err.Error() != "cannot read: broken" {
		t.Error(err)
	}
	p = start(t, t.Context(), Options{Handle: echo})
	p.outPipe.Close()
	p.write(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
	if err := p.end(); err == nil || !strings.HasPrefix(err.Error(), "cannot write: ") {
		t.Error(err)
	}
}

// panicking is a reader that fails in its own way.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("what was read") }

// TestReaderPanics: a reader that panics ends the connection by an error.
func TestReaderPanics(t *testing.T) {
	if err := New(Options{In: panicking{}, Out: io.Discard, Handle: echo}).Run(t.Context()); err == nil || strings.Contains(err.Error(), "what was read") {
		t.Error(err)
	}
}

// FuzzConn: whatever a peer sends, the connection ends with it, panics nowhere, and answers each
// request exactly once, which it can read itself.
func FuzzConn(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":1}}` + "\n" + `{"jsonrpc":"2.0","method":"n"}` + "\r\n\n{\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\u0000","method":"a"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":1}` + "\n" + `[]`))
	f.Add([]byte(strings.Repeat("x", 600) + "\n" + `{"jsonrpc":"2.0","id":2,"method":"a"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"a"}`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		want := map[ID]int{}
		faults := 0
	reading:
		for l := NewLines(bytes.NewReader(sent), 512); ; {
			line, err := l.Next()
			m, fault := Read(line)
			switch {
			case errors.Is(err, ErrTooLong):
				m, fault = readBeginning(line), Errorf(0, "")
			case err != nil:
				break reading
			}
			switch {
			case len(line) == 0 || m.IsResponse():
			case fault != nil && m.ID.IsZero():
				faults++
			case fault != nil || !m.IsNotification():
				want[m.ID]++
			}
		}
		var out bytes.Buffer
		panicked := error(nil)
		c := New(Options{In: bytes.NewReader(sent), Out: &out, MaxFrame: 512, Handle: echo, Panicked: func(err error) { panicked = err }})
		if err := c.Run(t.Context()); err != nil || panicked != nil {
			t.Fatal(err, panicked)
		}
		for line := range strings.Lines(out.String()) {
			id, _ := ParseID(json.RawMessage(idOf(t, line)))
			if id.IsZero() {
				faults--
			} else {
				want[id]--
			}
		}
		for id, n := range want {
			if n != 0 {
				t.Errorf("%s has %d answers too few in %q", id, n, out.String())
			}
		}
		if faults != 0 {
			t.Errorf("%d errors too few in %q", faults, out.String())
		}
	})
}

// idOf returns the id of an answer.
func idOf(t *testing.T, line string) string {
	t.Helper()
	var a struct {
		ID     json.RawMessage
		Result *json.RawMessage
		Error  *Error
	}
	if err := json.Unmarshal([]byte(line), &a); err != nil || !strings.HasSuffix(line, "\n") {
		t.Fatalf("%q: %v", line, err)
	}
	return string(a.ID)
}
