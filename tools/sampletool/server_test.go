package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/tools/internal/sample"
)

// started is a program that runs.
type started struct {
	url    string
	stop   context.CancelFunc
	done   chan int // its exit code
	output *bytes.Buffer
}

// begin runs the program on a free port until stop. Its output may be read when it has
// ended.
func begin(t *testing.T, args ...string) started {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := started{stop: stop, done: make(chan int, 1), output: &bytes.Buffer{}}
	read, write := io.Pipe()
	go func() {
		s.done <- run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), write, s.output)
		write.Close()
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "sampletool listening on ")
	if err != nil || !ok {
		stop()
		t.Fatalf("it said %q: %v", line, err)
	}
	go io.Copy(io.Discard, read)
	t.Cleanup(stop)
	s.url = "http://" + address
	return s
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "the heron\n")
	file := filepath.Join(t.TempDir(), "hits.jsonl")
	s := begin(t, "--root", dir, "--hits", file)
	if status, got := post(t, s.url+"/read", `{"path":"a.txt"}`, "one"); status != http.StatusOK || !strings.Contains(got, "heron") {
		t.Errorf("%d %s, want the text of the folder", status, got)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "\n") != 1 || !strings.Contains(string(data), `"call_id":"one"`) {
		t.Errorf("the file of hits: %q, %v; want one line", data, err)
	}
	var text bytes.Buffer
	if code := run(context.Background(), []string{"healthcheck", "--listen", strings.TrimPrefix(s.url, "http://")}, io.Discard, &text); code != sample.ExitDone {
		t.Errorf("it is not healthy: %d, %s", code, &text)
	}
	s.stop()
	if code := <-s.done; code != sample.ExitDone || s.output.Len() > 0 {
		t.Errorf("exit code %d, said %q; want 0 and nothing", code, s.output)
	}
}

func TestArguments(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "")
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"help":                      {[]string{"--help"}, sample.ExitDone, "-listen"},
		"an unknown flag":           {[]string{"--nonsense"}, sample.ExitUsage, "nonsense"},
		"an argument":               {[]string{"serve"}, sample.ExitUsage, `found the argument "serve"`},
		"no folder":                 {[]string{"--root", filepath.Join(dir, "none")}, sample.ExitUsage, "no such file"},
		"a root that is a file":     {[]string{"--root", file}, sample.ExitUsage, "not a directory"},
		"hits that are a folder":    {[]string{"--hits", dir}, sample.ExitUsage, "is a directory"},
		"an address that is taken":  {[]string{"--listen", taken.Addr().String()}, sample.ExitUsage, "address already in use"},
		"an address that is none":   {[]string{"--listen", "nowhere"}, sample.ExitUsage, "missing port"},
		"healthcheck of nothing":    {[]string{"healthcheck", "--listen", ports.Hold(t)}, sample.ExitFailed, "not healthy"},
		"healthcheck, no address":   {[]string{"healthcheck", "--listen", "nowhere"}, sample.ExitUsage, "missing port"},
		"healthcheck, strange host": {[]string{"healthcheck", "--listen", "a b:1"}, sample.ExitUsage, "expected host:port"},
		"healthcheck, an argument":  {[]string{"healthcheck", "now"}, sample.ExitUsage, `found the argument "now"`},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		if !strings.HasPrefix(name, "healthcheck") {
			cancel() // what starts after all ends at once
		}
		var stdout, stderr bytes.Buffer
		if code := run(ctx, c.args, &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.text) || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, said %q and %q; want %d, and %q as an error", name, code, &stdout, &stderr, c.code, c.text)
		}
		cancel()
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestAddressThatCannotBeSaid(t *testing.T) {
	var output bytes.Buffer
	if code := run(context.Background(), []string{"--listen", "127.0.0.1:0"}, closedPipe{}, &output); code != sample.ExitUsage {
		t.Errorf("exit code %d, said %q; want 2: nobody would know where it listens", code, &output)
	}
}

func TestHealthcheckOfEveryAddress(t *testing.T) {
	s := begin(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"", "0.0.0.0", "[::]"} {
		var output bytes.Buffer
		if code := run(context.Background(), []string{"healthcheck", "--listen", host + ":" + port}, io.Discard, &output); code != sample.ExitDone {
			t.Errorf("%q: exit code %d: %s", host, code, &output)
		}
	}
}

func TestHealthcheckOfSomethingElse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: http.NotFoundHandler()}
	go other.Serve(listener)
	defer other.Close()
	var output bytes.Buffer
	if code := run(context.Background(), []string{"healthcheck", "--listen", listener.Addr().String()}, io.Discard, &output); code != sample.ExitFailed || !strings.Contains(output.String(), "status 404") {
		t.Errorf("exit code %d, said %q; want 1 and the status", code, &output)
	}
}

// A client that leaves ends its wait: otherwise stopping would have to cut it off.
func TestClientLeaves(t *testing.T) {
	s := begin(t)
	ctx, disconnect := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/slow", strings.NewReader(`{"seconds":60}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	left := make(chan error, 1)
	go func() {
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			response.Body.Close()
		}
		left <- err
	}()
	for totalsOf(t, s.url).Total == 0 {
		time.Sleep(time.Millisecond)
	}
	disconnect()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatalf("the client got %v, want to have left", err)
	}
	s.stop()
	if code := <-s.done; code != sample.ExitDone {
		t.Errorf("exit code %d, said %q; want 0", code, s.output)
	}
}

// newTools starts a server with the sample tools. Limits changes its limits.
func newTools(t *testing.T, grace time.Duration, limits func(*http.Server)) (url string, stop func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := newServer(newBundled(t, newHits(nil, noon)), t.Output())
	limits(s)
	go func() { done <- sample.Serve(ctx, s, listener, grace) }()
	t.Cleanup(cancel)
	return "http://" + listener.Addr().String(), func() error {
		cancel()
		return <-done
	}
}

// The deadline for reading a request is over long before /slow is.
func TestWaitOutlivesTheDeadlineOfReading(t *testing.T) {
	url, stop := newTools(t, sample.Grace, func(s *http.Server) { s.ReadTimeout = time.Second })
	if status, got := post(t, url+"/slow", `{"seconds":1.5}`); status != http.StatusOK {
		t.Errorf("status %d, want 200: %s", status, got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestRequestsFinishWhenAskedToStop(t *testing.T) {
	url, stop := newTools(t, sample.Grace, func(*http.Server) {})
	status := make(chan int, 1)
	go func() {
		s, _ := post(t, url+"/slow", `{"seconds":0.3}`)
		status <- s
	}()
	for totalsOf(t, url).Total == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := <-status; got != http.StatusOK {
		t.Errorf("the request that was running got %d, want 200", got)
	}
}

func TestRequestsAreCutOffInTheEnd(t *testing.T) {
	url, stop := newTools(t, 50*time.Millisecond, func(*http.Server) {})
	broken := make(chan error, 1)
	go func() {
		response, err := http.Post(url+"/slow", "application/json", strings.NewReader(`{"seconds":60}`))
		if err == nil {
			response.Body.Close()
		}
		broken <- err
	}()
	for totalsOf(t, url).Total == 0 {
		time.Sleep(time.Millisecond)
	}
	var e *sample.ExitError
	if err := stop(); !errors.As(err, &e) || e.Code != sample.ExitFailed {
		t.Errorf("got %v, want the exit code 1", err)
	}
	if err := <-broken; err == nil {
		t.Error("the request was answered; it was to be cut off")
	}
}

func TestListenerFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	s := newServer(http.NotFoundHandler(), t.Output())
	var e *sample.ExitError
	if err := sample.Serve(context.Background(), s, listener, sample.Grace); !errors.As(err, &e) || e.Code != sample.ExitBroke {
		t.Errorf("got %v, want the exit code 3", err)
	}
}

// Half a header, and half a body, do not hold a connection for ever.
func TestSlowClients(t *testing.T) {
	for name, sent := range map[string]string{
		"half a header": "POST /time HTTP/1.1\r\nHost: x\r\n",
		"half a body":   "POST /time HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{",
	} {
		url, stop := newTools(t, sample.Grace, func(s *http.Server) {
			s.ReadHeaderTimeout, s.ReadTimeout = 50*time.Millisecond, 100*time.Millisecond
		})
		connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(connection, sent); err != nil {
			t.Fatal(err)
		}
		// Reading ends when the server has closed.
		if got, _ := io.ReadAll(connection); strings.Contains(string(got), " 200 ") {
			t.Errorf("%s was answered: %s", name, got)
		}
		connection.Close()
		if err := stop(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
