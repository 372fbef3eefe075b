package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/tools/internal/sample"
)

// begin runs the program on a free port until stop.
func begin(t *testing.T, args ...string) (url string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	read, write := io.Pipe()
	done := make(chan int, 1)
	output := &bytes.Buffer{}
	go func() {
		done <- run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), write, output)
		write.Close()
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "samplemodel listening on ")
	if err != nil || !ok {
		t.Fatalf("it said %q: %v", line, err)
	}
	return "http://" + address, func() (int, string) {
		cancel()
		return <-done, output.String()
	}
}

func TestRun(t *testing.T) {
	url, stop := begin(t)
	if status, _, got := post(t, url, `{"model":"text","messages":[{"role":"user","content":"q"}]}`); status != http.StatusOK || !strings.Contains(got, "twice a day") {
		t.Errorf("%d %s", status, got)
	}
	var output bytes.Buffer
	if code := run(context.Background(), []string{"healthcheck", "--listen", strings.TrimPrefix(url, "http://")}, io.Discard, &output); code != sample.ExitDone {
		t.Errorf("it is not healthy: %d, %s", code, &output)
	}
	if code, text := stop(); code != sample.ExitDone || text != "" {
		t.Errorf("exit code %d, said %q; want 0 and nothing", code, text)
	}
}

// TestStoppingEndsAStall would take the time of grace, and exit code 1, if what
// is stalled were waited for.
func TestStoppingEndsAStall(t *testing.T) {
	url, stop := begin(t)
	r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"stall","messages":[{"role":"user"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if code, output := stop(); code != sample.ExitDone {
		t.Errorf("exit code %d, said %q; want 0", code, output)
	}
	if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the answer ended with %v, want it broken off", err)
	}
}

func TestArguments(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		args         []string
		code         int
		text, prints string
	}{
		"help":                     {[]string{"--help"}, sample.ExitDone, "curl -s http://127.0.0.1:9001/v1/chat/completions", ""},
		"list":                     {[]string{"--list"}, sample.ExitDone, "", "agent      a small task"},
		"an unknown flag":          {[]string{"--nonsense"}, sample.ExitUsage, "nonsense", ""},
		"an argument":              {[]string{"serve"}, sample.ExitUsage, `found the argument "serve"`, ""},
		"an unknown scenario":      {[]string{"--scenario", "none"}, sample.ExitUsage, "one of agent, broken", ""},
		"no such file":             {[]string{"--scenario", filepath.Join(t.TempDir(), "none.json")}, sample.ExitUsage, "no such file", ""},
		"a file that is none":      {[]string{"--scenario", "scenarios/../run.go.json"}, sample.ExitUsage, "no such file", ""},
		"an address that is taken": {[]string{"--listen", taken.Addr().String()}, sample.ExitUsage, "address already in use", ""},
		"an address that is none":  {[]string{"--listen", "nowhere"}, sample.ExitUsage, "missing port", ""},
		"healthcheck of nothing":   {[]string{"healthcheck", "--listen", ports.Hold(t)}, sample.ExitFailed, "not healthy", ""},
		"healthcheck, no address":  {[]string{"healthcheck", "--listen", "nowhere"}, sample.ExitUsage, "missing port", ""},
		"healthcheck, a host":      {[]string{"healthcheck", "--listen", "a b:1"}, sample.ExitUsage, "expected host:port", ""},
		"healthcheck, an argument": {[]string{"healthcheck", "now"}, sample.ExitUsage, `found the argument "now"`, ""},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		if !strings.HasPrefix(name, "healthcheck") {
			cancel() // what starts after all ends at once
		}
		var stdout, stderr bytes.Buffer
		if code := run(ctx, c.args, &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.text) || !strings.Contains(stdout.String(), c.prints) || c.prints == "" && stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, said %q and %q; want %d, %q and %q", name, code, &stdout, &stderr, c.code, c.prints, c.text)
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
	url, _ := begin(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
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

func TestListenerFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	var e *sample.ExitError
	if err := serve(context.Background(), http.NotFoundHandler(), listener, t.Output()); !errors.As(err, &e) || e.Code != sample.ExitBroke {
		t.Errorf("got %v, want the exit code 3", err)
	}
}
