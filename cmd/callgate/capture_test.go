package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
)

// TestCapturePage runs the commands of docs/capture.md: a recorded request becomes a configuration that loads.
func TestCapturePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "capture.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ {4,}callgate (.*)$`).FindAllSubmatch(page, -1)
	if len(found) != 4 {
		t.Fatalf("the page has %d commands; expected 4", len(found))
	}
	t.Chdir(t.TempDir())
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer model.Close()

	recording := strings.NewReplacer("https://api.openai.com", model.URL, "127.0.0.1:8089", "127.0.0.1:0").Replace(string(found[0][1]))
	said, out := io.Pipe()
	var printed bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		code := run(t.Context(), cmdenv.Env{Stdin: strings.NewReader(""), Stdout: &printed, Stderr: out}, strings.Fields(recording))
		_ = out.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(said)
	address := regexp.MustCompile(`^capture: (http://[^ ]+) passes everything on to .* and judges nothing; `)
	if !lines.Scan() || !address.MatchString(lines.Text()) {
		t.Fatalf("it says %q, %v", lines.Text(), lines.Err())
	}
	base := address.FindStringSubmatch(lines.Text())[1]
	rest := make(chan string, 1)
	go func() {
		var b strings.Builder
		for lines.Scan() {
			b.WriteString(lines.Text() + "\n")
		}
		rest <- b.String()
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer sk-secret-1234")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || string(answer) != "/v1/chat/completions Bearer sk-secret-1234" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	select {
	case code := <-ended:
		summary := <-rest
		if code != exitAccepted || printed.String() != "callgate tools import openai "+filepath.Join("captured", "openai.json")+"\n" ||
			!strings.Contains(summary, "capture: 1 requests to a model, 0 not recorded") {
			t.Errorf("exit code %d: %s%s", code, printed.String(), summary)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("capture does not end")
	}
	for i, c := range found[1:] {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), cmdenv.Env{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Wait: inTests}, strings.Fields(string(c[1])))
		if names := strings.Contains(stdout.String(), "get_weather"); code != exitAccepted || !names && i > 0 { // init names files
			t.Errorf("%s: exit code %d: %s%s", c[1], code, stdout.String(), stderr.String())
		}
	}
}

// TestCaptureRefuses: what would listen or send where it should not, and a folder that is in use.
func TestCaptureRefuses(t *testing.T) {
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free := filepath.Join(t.TempDir(), "free")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--allow-any-listener", []string{"--listen", "0.0.0.0:0", "--upstream", "https://api.example", "--out", free}},
		{"--insecure-http", []string{"--upstream", "http://api.example", "--out", free}},
		{"is not empty", []string{"--upstream", "https://api.example", "--out", used}},
		{"expected more than nothing", []string{"--upstream", "https://api.example", "--out", free, "--requests", "-1"}},
		{`required flag(s) "upstream"`, []string{"--out", free}},
	} {
		var stderr bytes.Buffer
		code := run(t.Context(), cmdenv.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr}, append([]string{"capture"}, c.args...))
		if code != exitUsage || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr.String())
		}
	}
	// --for ends it by itself; nothing was recorded then.
	var stderr bytes.Buffer
	code := run(t.Context(), cmdenv.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr}, []string{"capture", "--listen", "127.0.0.1:0", "--upstream", "https://api.example", "--out", free, "--for", "1ms"})
	if code != exitRefused || !strings.Contains(stderr.String(), "no tools were seen") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
