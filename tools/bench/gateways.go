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

// hall is what a run has started.
type hall struct {
	work      string
	processes []*exec.Cmd
	folders   []string
}

// newHall looks for wrk, and makes a folder for the files of a run. The hall must be closed.
func newHall() (h *hall, wrk string, err error) {
	if wrk, err = exec.LookPath("wrk"); err != nil {
		return nil, "", errors.New("wrk is not installed; Debian's package is called wrk")
	}
	work, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, "", err
	}
	return &hall{work: work, folders: []string{work}}, wrk, nil
}

func (h *hall) close() {
	for _, p := range h.processes {
		p.Process.Kill()
		p.Wait()
	}
	for _, f := range h.folders {
		os.RemoveAll(f)
	}
}

// run starts a program and returns the address that its first line names.
func (h *hall) run(program string, args ...string) (pid int, address string, err error) {
	c := exec.CommandContext(context.Background(), program, args...)
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if err := c.Start(); err != nil {
		return 0, "", err
	}
	h.processes = append(h.processes, c)
	line, err := bufio.NewReader(out).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) == 0 {
		return 0, "", fmt.Errorf("%s did not say where it listens: %q", program, line)
	}
	return c.Process.Pid, fields[len(fields)-1], nil
}

// product is the module that is measured, from this one's folder.
const product = ".."

// build returns the gateway that is measured: the given program, or one that it builds.
func (h *hall) build(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	path := filepath.Join(h.work, "callgate")
	out, err := exec.Command("go", "build", "-C", product, "-tags", "nomsgpack", "-o", path, "./cmd/callgate").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
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

func (h *hall) start(program string) ([]*subject, error) {
	gateway, err := h.build(program)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	toolPID, address, err := h.run(self, "-tool")
	if err != nil {
		return nil, err
	}
	subjects := []*subject{{name: "direct", pid: toolPID, url: "http://" + address}}
	behind, err := h.nginx(address)
	if err != nil {
		return nil, err
	}
	if behind != nil {
		subjects = append(subjects, behind)
	}
	for _, kind := range []string{"tuned", "untuned", "own"} {
		pid, proxied, err := h.run(self, "-kind", kind, "-proxy", "http://"+address)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, &subject{name: kind, pid: pid, url: "http://" + proxied})
	}
	direct, err := h.script("direct.lua", arguments, "application/json")
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		s.script, s.url = direct, s.url+"/echo"
	}
	run := fmt.Sprintf(`{type: http, url: "http://%s/echo", addresses: [127.0.0.1/32]}`, address)
	gateways, err := h.calls(gateway, run)
	if err != nil {
		return nil, err
	}
	call, err := h.script("call.lua", completion, "text/plain")
	if err != nil {
		return nil, err
	}
	for _, s := range gateways {
		s.script, s.url = call, s.url+"/v1/calls"
	}
	return append(subjects, gateways...), nil
}

// calls starts the gateways that calls are measured on.
func (h *hall) calls(program, run string) ([]*subject, error) {
	files := map[string]string{"tools/bench.yaml": benchTool("read", run)}
	gateways, err := h.gateways(program, files)
	if err != nil {
		return nil, err
	}
	data, err := h.folder(memory)
	if err != nil {
		return nil, err
	}
	once, err := h.gateway(program, "once", data, map[string]string{"tools/bench.yaml": benchTool("once", run)})
	if err != nil {
		return nil, err
	}
	shared, err := h.shared(program, files)
	return slices.Concat(gateways, []*subject{once}, shared), err
}

// memory is a folder in memory.
const memory = "/dev/shm"

// folder makes a folder that close removes.
func (h *hall) folder(in string) (string, error) {
	data, err := os.MkdirTemp(in, "callgate-bench-")
	h.folders = append(h.folders, data)
	return data, err
}

// gateways starts one with its log in memory and one with its log on disk.
func (h *hall) gateways(program string, files map[string]string) ([]*subject, error) {
	var all []*subject
	for _, g := range []struct{ name, folder string }{{"memory", memory}, {"disk", h.work}} {
		data, err := h.folder(g.folder)
		if err != nil {
			return nil, err
		}
		s, err := h.gateway(program, g.name, data, files)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (h *hall) script(name, body, media string) (string, error) {
	path := filepath.Join(h.work, name)
	return path, os.WriteFile(path, []byte("wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \""+media+"\"\nwrk.body = [["+body+"]]\n"), 0o600)
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

// gateway starts callgate serve with one tool and wide limits. A line of
// callgate.yaml may be among the files.
func (h *hall) gateway(program, name, data string, more map[string]string) (*subject, error) {
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
		"callgate.yaml":   fmt.Sprintf("server: {listen: \"127.0.0.1:%d\", admin_listen: \"127.0.0.1:%d\"}\ndata_dir: %s\n%s# end\n", port, admin, data, more["callgate.yaml"]),
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
	c := exec.Command(program, "serve", "--config", filepath.Join(dir, "callgate.yaml"))
	if err := c.Start(); err != nil {
		return nil, err
	}
	h.processes = append(h.processes, c)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	return &subject{name: name, pid: c.Process.Pid, url: url}, waitFor(url + "/readyz")
}

// waitFor waits until a server answers.
func waitFor(url string) error {
	for range 100 {
		if r, err := http.Get(url); err == nil {
			return r.Body.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("nothing answers at %s", url)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
