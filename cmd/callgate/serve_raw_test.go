package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rawCase is one row of the table of raw requests.
type rawCase struct {
	name, want string
	bytes      []byte
}

var (
	repeated  = regexp.MustCompile(`(?s)\{(\d+)x([^}]+)\}`)
	emptyLine = regexp.MustCompile(`\r?\n\r?\n`)
)

// rawCases reads a table of raw requests.
func rawCases(t *testing.T, file string) []rawCase {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []rawCase
	for number, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " | ", 3)
		if len(fields) != 3 {
			t.Fatalf("%s:%d: found %d fields; expected 3", file, number+1, len(fields))
		}
		raw, err := strconv.Unquote(`"` + fields[2] + `"`)
		if err != nil {
			t.Fatalf("%s:%d: %v", file, number+1, err)
		}
		raw = repeated.ReplaceAllStringFunc(raw, func(s string) string {
			m := repeated.FindStringSubmatch(s)
			n, _ := strconv.Atoi(m[1])
			return strings.Repeat(m[2], n)
		})
		for strings.Contains(raw, "{len}") {
			before, after, _ := strings.Cut(raw, "{len}")
			at := emptyLine.FindStringIndex(after)
			if at == nil {
				t.Fatalf("%s:%d: no empty line behind {len}", file, number+1)
			}
			body, _, _ := strings.Cut(after[at[1]:], "{end}")
			raw = before + strconv.Itoa(len(body)) + strings.Replace(after, "{end}", "", 1)
		}
		all = append(all, rawCase{fields[0], fields[1], []byte(raw)})
	}
	return all
}

// lastWord is asked on a connection to see whether it takes a further request.
const lastWord = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// answers sends raw bytes and reads all that comes back, then says whether the
// connection took another request.
func answers(t *testing.T, g *gate, raw []byte) string {
	t.Helper()
	c := g.connected(t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	go func() {
		// Bytes that the gateway does not read may not arrive.
		c.Write(raw)
		io.WriteString(c, lastWord)
	}()
	in := bufio.NewReader(c)
	var all []string
	for {
		method := http.MethodGet
		if bytes.HasPrefix(raw, []byte("HEAD ")) && len(all) == 0 {
			method = http.MethodHead
		}
		response, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				return strings.Join(append(all, "silence"), ", ")
			}
			return strings.Join(all, ", ") + " closed"
		}
		// A connection that is closed with something left to read may cut its last
		// answer short, behind the status.
		body, err := io.ReadAll(response.Body)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			return strings.Join(append(all, err.Error()), ", ")
		}
		if string(body) == "ok\n" {
			return strings.Join(all, ", ") + " open"
		}
		all = append(all, fmt.Sprintf("%d %s", response.StatusCode, codeIn(response, body)))
	}
}

// codeIn is the code of an answer; what holds none of Callgate's own is --.
func codeIn(response *http.Response, body []byte) string {
	if response.StatusCode == http.StatusContinue {
		return "-"
	}
	if !json.Valid(body) || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return "--"
	}
	if code := (reply{body: string(body)}).code(); code != "" {
		return code
	}
	return "-"
}

// TestRaw sends requests as bytes: each has exactly one answer.
func TestRaw(t *testing.T) {
	t.Parallel()
	cases := rawCases(t, filepath.Join("..", "..", "gateway", "faces", "native", "testdata", "raw", "requests.txt"))
	if len(cases) < 45 {
		t.Fatalf("only %d requests", len(cases))
	}
	config, _ := unlimitedVectors(t)
	main, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Replace(string(main), "server: {", "server: {hosts: [x, elsewhere.example], ", 1)
	if err := os.WriteFile(config, []byte(named), 0o600); err != nil || named == string(main) {
		t.Fatal("the gateway has no names", err)
	}
	g := serveGate(t, config)
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.name] {
			t.Errorf("two rows are %q", c.name)
		}
		names[c.name] = true
		if got := answers(t, g, c.bytes); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	if log := g.stderr.String(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
		t.Error("the log tells of a panic")
	}
}
