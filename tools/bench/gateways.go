package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hall is what a run has started, and takes away at its end.
type hall struct {
	wrk  string // the program
	work string
	ends []func()
}

// newHall looks for wrk, and makes a folder for the files of a run. The hall must be closed.
func newHall() (*hall, error) {
	wrk, err := exec.LookPath("wrk")
	if err != nil {
		return nil, errors.New("wrk is not installed; Debian's package is called wrk")
	}
	work, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	return &hall{wrk: wrk, work: work, ends: []func(){func() { os.RemoveAll(work) }}}, nil
}

func (h *hall) close() {
	for _, end := range slices.Backward(h.ends) {
		end()
	}
}

// begin starts a program that close ends. The channel is closed when it has ended.
func (h *hall) begin(c *exec.Cmd) (<-chan struct{}, error) {
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		c.Wait()
		close(ended)
	}()
	h.ends = append(h.ends, func() {
		c.Process.Kill()
		<-ended
	})
	return ended, nil
}

// self starts this program in a role, and returns the address that its first line names.
func (h *hall) self(role ...string) (pid int, address string, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, "", err
	}
	// A pipe of ours, since that of StdoutPipe is closed by Wait.
	out, in, err := os.Pipe()
	if err != nil {
		return 0, "", err
	}
	defer out.Close()
	c := exec.Command(program, role...)
	c.Stdout = in
	_, err = h.begin(c)
	in.Close()
	if err != nil {
		return 0, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) == 0 {
		return 0, "", fmt.Errorf("%s did not say where it listens: %q", role[0], line)
	}
	return c.Process.Pid, fields[len(fields)-1], nil
}

// proxy starts one of the bare proxies before a server.
func (h *hall) proxy(kind, address string) (*subject, error) {
	pid, proxied, err := h.self(roleProxy, kind, "http://"+address)
	return &subject{name: kind, pid: pid, url: "http://" + proxied}, err
}

// product is the module that is measured, from this one's folder.
const product = ".."

// build returns the gateway that is measured: the given program, or that of a tree,
// which it builds.
func (h *hall) build(ctx context.Context, given, tree string) (string, error) {
	if given != "" {
		return given, nil
	}
	dir, err := os.MkdirTemp(h.work, "built-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "callgate")
	// Without paths of its own, one tree uses what another has compiled.
	out, err := exec.CommandContext(ctx, "go", "build", "-C", tree, "-trimpath", "-buildvcs=false", "-tags", "nomsgpack", "-o", path,
		"./cmd/callgate").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build in %s: %w: %s", tree, err, out)
	}
	return path, nil
}

// The call of all subjects, and the schema that its arguments are judged by.
const (
	arguments = `{"query":"agent memory and the audit log of a gateway","limit":5,"sort":"newest","fuzzy":false,"weight":0.75,` +
		`"tags":["memory","gateway","audit"],"filters":{"language":"en","after":"2026-01-01","before":"2026-11-01"}}`
	completion = `{"tool":{"name":"bench.echo","arguments":` + arguments + `}}`
	schema     = `
      type: object
      required: [query, filters, limit]
      properties:
        query: {type: string, minLength: 1, maxLength: 400}
        limit: {type: integer, minimum: 1, maximum: 50}
        sort: {type: string, enum: [relevance, newest, oldest]}
        fuzzy: {type: boolean}
        weight: {type: number, minimum: 0, maximum: 1}
        tags: {type: array, items: {type: string, maxLength: 40}, maxItems: 8}
        filters:
          type: object
          required: [language]
          properties:
            language: {type: string, enum: [en, de, fr]}
            after: {type: string}
            before: {type: string}
`
)

// memory is a folder in memory.
const memory = "/dev/shm"

// folder makes a folder that close removes.
func (h *hall) folder(in string) (string, error) {
	data, err := os.MkdirTemp(in, "callgate-bench-")
	if err != nil {
		return "", err
	}
	h.ends = append(h.ends, func() { os.RemoveAll(data) })
	return data, nil
}

// benchTool is the one tool, its effect, and how it is run.
func benchTool(effect, run string) string {
	return "tools:\n  - name: bench.echo\n    effect: " + effect + "\n    input_schema:" + schema + "    run: " + run + "\n# end\n"
}

// wideLimits are budgets of every kind that no load here uses up.
const wideLimits = `caller: {rate: 1000000/s, burst: 1000000}
default: {rate: 1000000/s, burst: 1000000, concurrency: 1000}
tools: {bench.echo: {rate: 1000000/s, burst: 1000000}}
projects: {acme/alpha: {rate: 1000000/s, burst: 1000000}}
`

// gateway starts callgate serve with one tool and wide limits, and few keys, since
// a gate starts older programs by them too. A line of callgate.yaml may be among
// the files.
func (h *hall) gateway(ctx context.Context, program, name, data string, more map[string]string) (*subject, error) {
	dir := filepath.Join(h.work, name)
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	admin, err := freePort()
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"callgate.yaml": fmt.Sprintf("server: {listen: \"127.0.0.1:%d\", admin_listen: \"127.0.0.1:%d\"}\ndata_dir: %s\n%s# end\n", port,
			admin, data, more["callgate.yaml"]),
		"policy.csv":      "p, role:user, acme/*, bench.*, , allow\ng, Analyst, role:user, acme/alpha\n# end\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], hosts: [example.com]}}}}\n# end\n",
		"limits.yaml":     wideLimits + "# end\n",
	}
	for file, text := range more {
		if file != "callgate.yaml" {
			files[file] = text
		}
	}
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	serve := []string{"serve", "--config", filepath.Join(dir, "callgate.yaml")}
	c := exec.Command(program, serve...)
	ended, err := h.begin(c)
	if err != nil {
		return nil, err
	}
	s := &subject{name: name, pid: c.Process.Pid, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	if err := waitFor(ctx, s.url+"/readyz", ended); err != nil {
		return nil, fmt.Errorf("the gateway %q: %w: %s", name, err, whyNot(ctx, program, serve))
	}
	return s, nil
}

// whyNot starts a gateway that did not become ready once more, for what it prints:
// while it is measured, its log goes nowhere.
func whyNot(ctx context.Context, program string, args []string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, program, args...).CombinedOutput() // it fails, or is stopped
	return strings.TrimSpace(string(out))
}

// waitFor waits until a server is ready, or its process has ended.
func waitFor(ctx context.Context, url string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if ready(ctx, url) {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("it is not ready at %s: %w", url, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func ready(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	r.Body.Close()
	return r.StatusCode == http.StatusOK
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
