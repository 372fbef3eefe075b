package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is far longer than anything here takes.
const patience = 30 * time.Second

// echo answers a request by its parameters.
func echo(_ context.Context, m *Message) (any, *Error) { return m.Params, nil }

// outputs runs a connection on lines to its end, and returns the lines that it wrote.
func outputs(t *testing.T, o Options, lines ...string) []string {
	t.Helper()
	var out bytes.Buffer
	o.In, o.Out = strings.NewReader(strings.Join(lines, "\n")), &out
	if err := New(o).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// TestConnRefuses: a line that is no message is answered by an error, a response never, and the next
// message is read.
func TestConnRefuses(t *testing.T) {
	for line, want := range map[string]string{
		`{`: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		`[{"jsonrpc":"2.0","id":1,"method":"a"}]`:                     `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":"x","method":"a","params":[]}`:         `{"jsonrpc":"2.0","id":"x","error":{"code":-32600,`,
		strings.Repeat("x", 2000):                                     `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The message is longer than 1000 bytes."`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                        "",
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`: "",
		`{"jsonrpc":"2.0","id":[],"result":{}}`:                       "",
		`{"jsonrpc":"2.0","method":"n"}`:                              "",
		"":                                                            "",
		"\r":                                                          "",
	} {
		const ping = `{"jsonrpc":"2.0","id":"last","method":"a","params":{"x":1}}`
		got := outputs(t, Options{Handle: echo, MaxFrame: 1000}, line, ping)
		if got[len(got)-1] != `{"jsonrpc":"2.0","id":"last","result":{"x":1}}` {
			t.Errorf("%.50s: %q", line, got)
		}
		if want == "" && len(got) != 1 || want != "" && (len(got) != 2 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%.50s: %q", line, got)
		}
	}
}

// TestConnPanics: a panic is an answer without details, and the connection continues.
func TestConnPanics(t *testing.T) {
	const canary = "what a peer wrote"
	var reported []error
	broken := func() { panic(canary) }
	got := outputs(t, Options{
		Handle: func(_ context.Context, m *Message) (any, *Error) {
			switch m.Method {
			case "encode":
				return func() {}, nil
			case "data":
				return nil, &Error{Code: 1, Data: func() {}}
			}
			return nil, nil
		},
		Receive: func(_ context.Context, m *Message) *Error {
			if m.Method == "receive" {
				broken()
			}
			return nil
		},
		Notify:        func(context.Context, *Message) { broken() },
		Unsolicited:   func(context.Context, *Message, *Error) { broken() },
		Panicked:      func(err error) { reported = append(reported, err) },
		MaxConcurrent: 100,
	}, `{"jsonrpc":"2.0","method":"n"}`, `{"jsonrpc":"2.0","id":7,"result":1}`, `{"jsonrpc":"2.0","id":1,"method":"receive"}`, `{"jsonrpc":"2.0","id":2,"method":"encode"}`,
		`{"jsonrpc":"2.0","id":3,"method":"data"}`, `{"jsonrpc":"2.0","id":4,"method":"fine"}`)
	if len(got) != 4 || len(reported) != 3 || strings.Contains(fmt.Sprint(got, reported), canary) {
		t.Errorf("%q %v", got, reported)
	}
	for id, code := range map[int]string{1: `"error":{"code":-32603,`, 2: `"error":{"code":-32603,`, 3: `"error":{"code":-32603,`, 4: `"result":null`} {
		if !strings.Contains(strings.Join(got, "\n"), fmt.Sprintf(`"id":%d,%s`, id, code)) {
			t.Errorf("%d: %q", id, got)
		}
	}
	if got := outputs(t, Options{Handle: func(context.Context, *Message) (any, *Error) { panic(canary) }}, `{"jsonrpc":"2.0","id":1,"method":"a"}`); len(got) != 1 || !strings.Contains(got[0], "-32603") || strings.Contains(got[0], canary) {
		t.Errorf("%q", got)
	}
}

// TestConnRefuse: a face may say its own error for each refusal, and encode answers itself.
func TestConnRefuse(t *testing.T) {
	got := outputs(t, Options{
		Handle:   echo,
		MaxFrame: 100,
		Refuse:   func(why Refusal, e *Error) *Error { return &Error{Code: int(why), Message: e.Message, Data: "own"} },
	}, strings.Repeat("x", 200), `{}`)
	if len(got) != 2 || !strings.Contains(got[0], `"code":1,`) || !strings.Contains(got[1], `"code":0,`) || !strings.Contains(got[1], `"data":"own"`) {
		t.Errorf("%q", got)
	}
	got = outputs(t, Options{Handle: echo, Encode: func(id ID, _ any, _ *Error) ([]byte, error) { return []byte("own " + id.String()), nil }}, `{"jsonrpc":"2.0","id":1,"method":"a"}`)
	if len(got) != 1 || got[0] != "own 1" {
		t.Errorf("%q", got)
	}
	if got := outputs(t, Options{Handle: func(context.Context, *Message) (any, *Error) { return nil, NoAnswer }}, `{"jsonrpc":"2.0","id":1,"method":"a"}`); got[0] != "" {
		t.Errorf("%q", got)
	}
}

// peer is the other side of a connection that runs.
type peer struct {
	t       *testing.T
	conn    *Conn
	in      *io.PipeWriter
	out     *Lines
	outPipe *io.PipeReader
	ended   chan error
}

// start runs a connection in memory.
func start(t *testing.T, ctx context.Context, o Options) *peer {
	t.Helper()
	in, toConn := io.Pipe()
	fromConn, out := io.Pipe()
	o.In, o.Out = in, out
	p := &peer{t: t, conn: New(o), in: toConn, out: NewLines(fromConn, 1<<20), outPipe: fromConn, ended: make(chan error, 1)}
	go func() { p.ended <- p.conn.Run(ctx) }()
	t.Cleanup(func() {
		toConn.Close()
		fromConn.Close()
		in.Close()
	})
	return p
}

func (p *peer) write(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *peer) next() string {
	p.t.Helper()
	line, err := p.out.Next()
	if err != nil {
		p.t.Fatal(err)
	}
	return string(line)
}

// end waits for the end of Run.
func (p *peer) end() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		p.t.Fatal("Run does not return")
		return nil
	}
}

// TestConnBounds: beyond the bound a request is refused at once; an id that is being answered
// stands for no other request; both are free again after the answer.
func TestConnBounds(t *testing.T) {
	proceed := make(chan struct{})
	p := start(t, t.Context(), Options{MaxConcurrent: 2, Handle: func(context.Context, *Message) (any, *Error) {
		<-proceed
		return nil, nil
	}})
	p.write(`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":"1","method":"a"}`)
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":3,"method":"a"}`:        `"id":3,"error":{"code":-32603,`,
		`{"jsonrpc":"2.0","id":1,"method":"a"}`:        `"id":1,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":"\u0031","method":"a"}`: `"id":"1","error":{"code":-32600,`,
	} {
		if p.write(line); !strings.Contains(p.next(), want) {
			t.Errorf("%s is not refused", line)
		}
	}
	close(proceed)
	p.next()
	p.next()
	if p.write(`{"jsonrpc":"2.0","id":1,"method":"a"}`); p.next() != `{"jsonrpc":"2.0","id":1,"result":null}` {
		t.Error("the id is not free")
	}
	p.in.Close()
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestConnOrder: Receive and Notify come in the order of the messages, and a call returns after the
// notifications that the peer sent before its response.
func TestConnOrder(t *testing.T) {
	var mu sync.Mutex
	var came []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		came = append(came, what)
	}
	p := start(t, t.Context(), Options{
		Handle:  func(ctx context.Context, m *Message) (any, *Error) { <-ctx.Done(); return "cancelled", nil },
		Receive: func(_ context.Context, m *Message) *Error { note("receive " + m.ID.String()); return nil },
		Notify: func(_ context.Context, m *Message) {
			note(m.Method)
		},
	})
	called := make(chan error, 1)
	go func() {
		result, err := p.conn.Call(t.Context(), "ask", map[string]int{"x": 1})
		note("answered " + string(result))
		called <- err
	}()
	if got := p.next(); got != `{"jsonrpc":"2.0","id":1,"method":"ask","params":{"x":1}}` {
		t.Error(got)
	}
	var want []string
	for i := range 100 {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"n%d"}`, i), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"a"}`, i))
		want = append(want, fmt.Sprintf("n%d", i))
		if i < 64 {
			want = append(want, fmt.Sprintf("receive %d", i))
		} else if got := p.next(); !strings.Contains(got, "-32603") {
			t.Error(got)
		}
	}
	p.write(`{"jsonrpc":"2.0","id":1,"result":[true]}`)
	if err := <-called; err != nil {
		t.Error(err)
	}
	if want = append(want, "answered [true]"); fmt.Sprint(came) != fmt.Sprint(want) {
		t.Errorf("%q", came)
	}
	if p.conn.Cancel(StringID("1")) || !p.conn.Cancel(NumberID(1)) || p.next() != `{"jsonrpc":"2.0","id":1,"result":"cancelled"}` {
		t.Error("it was not cancelled")
	}
	p.in.Close() // ends the contexts of the others
	for range 63 {
		if got := p.next(); !strings.Contains(got, "cancelled") {
			t.Error(got)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestCallFails: an answer that is an error, or none; one that comes too late, twice, or to nothing.
func TestCallFails(t *testing.T) {
	unmatched := make(chan string, 10)
	p := start(t, t.Context(), Options{Handle: echo, Unsolicited: func(_ context.Context, m *Message, fault *Error) {
		unmatched <- fmt.Sprint(m.ID, fault != nil)
	}})
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":%d,"error":{"code":7,"message":"no","data":{"a":1}}}`: `error 7 of JSON-RPC`,
		`{"jsonrpc":"2.0","id":%d,"result":1,"error":{"code":7,"message":"no"}}`:     ErrBadResponse.Error(),
		`{"jsonrpc":"2.0","id":%d,"result":1,"more":1}`:                              ErrBadResponse.Error(),
		`{"jsonrpc":"2.0","id":%d,"result":"` + strings.Repeat("x", 9<<20) + `"}`:    ErrBadResponse.Error(),
		`{"jsonrpc":"2.0","id":%d,"error":"no"}`:                                     ErrBadResponse.Error(),
	} {
		call, err := p.started()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := call.ID().Number()
		p.write(fmt.Sprintf(line, id))
		_, err = call.Wait(t.Context())
		if err == nil || err.Error() != want {
			t.Errorf("%.100s: %v", line, err)
		}
		var failed *Error
		if errors.As(err, &failed) && (failed.Message != "no" || string(failed.Data.(json.RawMessage)) != `{"a":1}`) {
			t.Errorf("%+v", failed)
		}
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":2}`, id))
		if got := <-unmatched; got != fmt.Sprint(id, " false") {
			t.Error(got)
		}
	}
	call, err := p.started()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.write(`{"jsonrpc":"2.0","id":`+call.ID().String()+`,"result":{}}`, `{"jsonrpc":"2.0","id":"1","result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`)
	for _, want := range []string{call.ID().String() + " false", `"1" false`, "null true"} {
		if got := <-unmatched; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, err := p.conn.Call(t.Context(), "a", func() {}); err == nil {
		t.Error("a function is no JSON")
	}
	if call, err = p.started(); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	if _, err := call.Wait(t.Context()); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if _, err := p.conn.Call(t.Context(), "a", nil); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
	if err := p.conn.Notify("a", nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if len(p.conn.waiting) != 0 {
		t.Error(p.conn.waiting)
	}
}

// started starts a call, and reads its line.
func (p *peer) started() (call *Pending, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call, err = p.conn.Start(p.t.Context(), "ask", nil)
	}()
	p.next()
	<-done
	return call, err
}

// TestAnswered: a caller that is told that a request was answered finds the answer written.
func TestAnswered(t *testing.T) {
	var out bytes.Buffer
	var reported []string
	o := Options{
		In: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}`), Out: &out, Handle: echo,
		Answered: func(m *Message) { reported = append(reported, m.Method+out.String()) },
	}
	if err := New(o).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(reported) != 1 || reported[0] != `a{"jsonrpc":"2.0","id":1,"result":{"x":1}}`+"\n" {
		t.Errorf("told %q", reported)
	}
}
