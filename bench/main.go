// Command bench sets the gateway beside named baselines, all in one run:
//
//	direct    the sample tool itself
//	proxy     bare gin with httputil.ReverseProxy to the sample tool
//	unsynced  callgate serve with every check on, its audit log in memory
//	synced    callgate serve with every check on, its audit log on disk
//	shared    as unsynced, with its limits on Redis
//
// Each is loaded by wrk in turn, three rounds interleaved, and the medians are
// printed with their ratios to the proxy: requests per second, and processor
// time per request of the process in between. Absolute figures mean little on a
// shared machine; the ratios do. It takes about a minute and stops what it
// started.
//
// With -chat it does the same for chat completions, in front of a mock model;
// see chat.go.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

func main() {
	proxyTo := flag.String("proxy", "", "be the bare proxy to this `URL`, and nothing else")
	beModel := flag.Bool("model", false, "be the mock model, and nothing else")
	chat := flag.Bool("chat", false, "measure chat completions")
	short := flag.Int("streams", 10_000, "how many short streams are counted, with -chat")
	rounds := flag.Int("rounds", 3, "how often each is loaded")
	seconds := flag.Int("seconds", 4, "how long each time")
	connections := flag.Int("connections", 32, "how many connections")
	flag.Parse()
	var err error
	switch {
	case *proxyTo != "":
		err = proxy(*proxyTo)
	case *beModel:
		err = mock()
	case *chat:
		err = chatBench{rounds: *rounds, seconds: *seconds, connections: *connections, streams: *short}.run()
	default:
		err = bench(*rounds, *seconds, *connections)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "httpbench:", err)
		os.Exit(1)
	}
}

// proxy serves bare gin with a reverse proxy, and says where.
func proxy(to string) error {
	target, err := url.Parse(to)
	if err != nil {
		return err
	}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	reverse := httputil.NewSingleHostReverseProxy(target)
	e.Any("/*path", func(c *gin.Context) { reverse.ServeHTTP(c.Writer, c.Request) })
	return listen("proxy", e)
}

// listen serves on a free port, and returns its address.
func listen(name string, handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("%s listening on %s\n", name, listener.Addr())
	return http.Serve(listener, handler)
}

// subject is one of the things that are measured.
type subject struct {
	name   string
	pid    int
	script string // for wrk
	url    string
	rates  []float64 // requests a second
	costs  []float64 // processor microseconds a request
}

func bench(rounds, seconds, connections int) error {
	h, wrk, err := newHall()
	if err != nil {
		return err
	}
	defer h.close()
	subjects, err := h.start()
	if err != nil {
		return err
	}
	for round := range rounds {
		for _, s := range subjects {
			if err := s.load(wrk, seconds, connections); err != nil {
				return err
			}
			s.report(round)
		}
	}
	table(subjects)
	return nil
}

// load loads a subject once.
func (s *subject) load(wrk string, seconds, connections int) error {
	before := processorTime(s.pid)
	out, err := exec.Command(wrk, "-t1", "-c"+strconv.Itoa(connections), "-d"+strconv.Itoa(seconds)+"s", "-s", s.script, s.url).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wrk: %w: %s", err, out)
	}
	rate, requests, err := readWrk(string(out))
	if err != nil {
		return fmt.Errorf("%s: %w: %s", s.name, err, out)
	}
	s.rates = append(s.rates, rate)
	s.costs = append(s.costs, float64((processorTime(s.pid)-before).Microseconds())/requests)
	return nil
}

func (s *subject) report(round int) {
	fmt.Fprintf(os.Stderr, "round %d: %-9s %8.0f requests a second, %4.0f µs of processor each\n", round+1, s.name, s.rates[len(s.rates)-1], s.costs[len(s.costs)-1])
}

// table prints the medians, and their ratios to the second subject's.
func table(subjects []*subject) {
	base := subjects[1]
	fmt.Printf("%-10s %12s %8s %14s %8s\n", "", "requests/s", "ratio", "µs processor", "ratio")
	for _, s := range subjects {
		fmt.Printf("%-10s %12.0f %8.2f %14.0f %8.2f\n", s.name, median(s.rates), median(s.rates)/median(base.rates), median(s.costs), median(s.costs)/median(base.costs))
	}
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

var (
	wrkRate  = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkTotal = regexp.MustCompile(`([0-9]+) requests in`)
)

// readWrk returns requests a second and in all. Any answer but 2xx is an error:
// what is refused costs little.
func readWrk(out string) (rate, total float64, err error) {
	if strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
		return 0, 0, errors.New("requests failed")
	}
	r, t := wrkRate.FindStringSubmatch(out), wrkTotal.FindStringSubmatch(out)
	if r == nil || t == nil {
		return 0, 0, errors.New("wrk said something else")
	}
	rate, _ = strconv.ParseFloat(r[1], 64)
	total, _ = strconv.ParseFloat(t[1], 64)
	return rate, total, nil
}

// processorTime is what a process has used.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	return time.Duration(user+system) * tick
}

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
	work, err := os.MkdirTemp("", "httpbench-")
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

func (h *hall) build(name, from string) (string, error) {
	path := filepath.Join(h.work, name)
	out, err := exec.Command("go", "build", "-C", product, "-tags", "nomsgpack", "-o", path, from).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build %s: %w: %s", from, err, out)
	}
	return path, nil
}

const (
	arguments  = `{"query":"agent memory and the audit log of a gateway","limit":5}`
	completion = `{"tool":{"name":"bench.echo","arguments":` + arguments + `}}`
)

func (h *hall) start() ([]*subject, error) {
	gateway, err := h.build("callgate", "./cmd/callgate")
	if err != nil {
		return nil, err
	}
	tool, err := h.build("sampletool", "./cmd/sampletool")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	toolPID, toolAddress, err := h.run(tool, "--listen", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	proxyPID, proxyAddress, err := h.run(self, "-proxy", "http://"+toolAddress)
	if err != nil {
		return nil, err
	}
	direct, err := h.script("direct.lua", arguments, "application/json")
	if err != nil {
		return nil, err
	}
	call, err := h.script("call.lua", completion, "text/plain")
	if err != nil {
		return nil, err
	}
	subjects := []*subject{
		{name: "direct", pid: toolPID, script: direct, url: "http://" + toolAddress + "/echo"},
		{name: "proxy", pid: proxyPID, script: direct, url: "http://" + proxyAddress + "/echo"},
	}
	files := map[string]string{"tools/bench.yaml": benchTool(fmt.Sprintf(`{type: http, url: "http://%s/echo", addresses: [127.0.0.1/32]}`, toolAddress))}
	gateways, err := h.gateways(gateway, files)
	if err != nil {
		return nil, err
	}
	shared, err := h.shared(gateway, files)
	if err != nil {
		return nil, err
	}
	gateways = append(gateways, shared...)
	for _, s := range gateways {
		s.script = call
		s.url += "/v1/calls"
	}
	return append(subjects, gateways...), nil
}

// gateways starts one with its log in memory and one with its log on disk.
func (h *hall) gateways(program string, files map[string]string) ([]*subject, error) {
	var all []*subject
	for _, g := range []struct{ name, folder string }{{"unsynced", "/dev/shm"}, {"synced", h.work}} {
		data, err := os.MkdirTemp(g.folder, "callgate-bench-")
		if err != nil {
			return nil, err
		}
		h.folders = append(h.folders, data)
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

// benchTool is the one tool, and how it is run.
func benchTool(run string) string {
	return `tools:
  - name: bench.echo
    effect: read
    input_schema:
      type: object
      required: [query]
      properties:
        query: {type: string, minLength: 1, maxLength: 400}
        limit: {type: integer, minimum: 1, maximum: 50}
        site: {type: string, x-boundary: host}
    run: ` + run + "\n# end\n"
}

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
		"limits.yaml": "caller: {rate: 1000000/s, burst: 1000000}\ndefault: {rate: 1000000/s, burst: 1000000, concurrency: 1000}\n" +
			"tools: {bench.echo: {rate: 1000000/s, burst: 1000000}}\nprojects: {acme/alpha: {rate: 1000000/s, burst: 1000000}}\n# end\n",
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
	for range 100 {
		if r, err := http.Get(url + "/readyz"); err == nil {
			r.Body.Close()
			return &subject{name: name, pid: c.Process.Pid, url: url}, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.New("the gateway did not come up")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
