package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// subject is one of the things that are measured.
type subject struct {
	name   string
	pid    int
	script string // for wrk
	url    string
}

// sample is what one slice of load says of a subject.
type sample struct {
	cost    float64 // processor microseconds a request or stream, user and system together
	rate    float64 // requests or whole streams a second
	latency float64 // microseconds: the median of requests, or of first tokens
	done    int     // requests or streams
	cut     int     // streams among them that did not end as they should
}

// metric is one figure of a sample.
type metric struct {
	title string
	of    func(sample) float64
	more  bool // is better
}

func costOf(unit string) metric {
	return metric{title: "processor µs a " + unit, of: func(s sample) float64 { return s.cost }}
}

func rateOf(unit string) metric {
	return metric{title: unit + "s a second", of: func(s sample) float64 { return s.rate }, more: true}
}

func latencyOf(title string) metric {
	return metric{title: title, of: func(s sample) float64 { return s.latency }}
}

// ofRequests are the figures of a load of requests.
func ofRequests() []metric {
	return []metric{costOf("request"), rateOf("request"), latencyOf("median latency, µs")}
}

// benchCase is one load, and the subjects that it is put on in turn. Ratios are
// to the subject called reference.
type benchCase struct {
	name      string
	metrics   []metric
	subjects  []*subject
	reference string
	load      func(context.Context, *subject) (sample, error)
	streams   bool       // those that are cut are shown
	samples   [][]sample // by subject, then by round
}

// over is the name of a load over so many connections.
func over(load string, connections int) string {
	if connections == 1 {
		return load + ", 1 connection"
	}
	return fmt.Sprintf("%s, %d connections", load, connections)
}

// measure puts every load on its subjects, round by round. Each round begins
// with another subject, so that none always comes first. What was measured already
// stays.
func measure(ctx context.Context, cases []*benchCase, rounds int) error {
	for _, c := range cases {
		if c.samples == nil {
			c.samples = make([][]sample, len(c.subjects))
		}
	}
	for round := range rounds {
		for _, c := range cases {
			for turn := range c.subjects {
				i := (round + turn) % len(c.subjects)
				got, err := c.load(ctx, c.subjects[i])
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.name, c.subjects[i].name, err)
				}
				c.samples[i] = append(c.samples[i], got)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
	}
	return nil
}

// values are those of one subject, by round.
func (c *benchCase) values(i int, m metric) []float64 {
	var all []float64
	for _, s := range c.samples[i] {
		all = append(all, m.of(s))
	}
	return all
}

func (c *benchCase) index(name string) int {
	return slices.IndexFunc(c.subjects, func(s *subject) bool { return s.name == name })
}

// print prints a table for each figure: how the rounds lie, and the ratios of
// pairs; of streams also how many did not end as they should.
func (c *benchCase) print() {
	for _, m := range c.metrics {
		fmt.Printf("\n%s: %s\n%-9s %8s %8s %8s %8s %8s   %6s %6s %6s\n", c.name, m.title, "", "median", "min", "q25", "q75", "max", "ratio",
			"q25", "q75")
		reference := c.values(c.index(c.reference), m)
		for i, s := range c.subjects {
			v, r := spreadOf(c.values(i, m)), spreadOf(pairs(c.values(i, m), reference))
			fmt.Printf("%-9s %8.0f %8.0f %8.0f %8.0f %8.0f   %6.2f %6.2f %6.2f\n", s.name, v.median, v.min, v.q25, v.q75, v.max, r.median,
				r.q25, r.q75)
		}
	}
	if !c.streams {
		return
	}
	fmt.Printf("\n%s: streams cut, of all\n", c.name)
	for i, s := range c.subjects {
		var cut, done int
		for _, one := range c.samples[i] {
			cut, done = cut+one.cut, done+one.done
		}
		fmt.Printf("%-9s %8d of %d\n", s.name, cut, done)
	}
}

// loadAverage is that of the machine over 1, 5 and 15 minutes.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// requests loads a subject with wrk.
func (h *hall) requests(ctx context.Context, s *subject, script string, connections, seconds int) (sample, error) {
	before := processorTime(s.pid)
	out, err := exec.CommandContext(ctx, h.wrk, "-t1", "-c"+strconv.Itoa(connections), "-d"+strconv.Itoa(seconds)+"s", "--latency",
		"-s", script, s.url).CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	got, err := readWrk(string(out))
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, out)
	}
	got.cost = float64((processorTime(s.pid) - before).Microseconds()) / float64(got.done)
	return got, nil
}

var (
	wrkRate    = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkTotal   = regexp.MustCompile(`([0-9]+) requests in`)
	wrkLatency = regexp.MustCompile(`50%\s+([0-9.]+)(us|ms|s)`)
)

// readWrk reads the output of wrk. Any answer but 2xx is an error: a refusal costs little.
func readWrk(out string) (sample, error) {
	if strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
		return sample{}, errors.New("requests failed")
	}
	rate, total, latency := wrkRate.FindStringSubmatch(out), wrkTotal.FindStringSubmatch(out), wrkLatency.FindStringSubmatch(out)
	if rate == nil || total == nil || latency == nil {
		return sample{}, errors.New("wrk printed no figures")
	}
	var s sample
	s.rate, _ = strconv.ParseFloat(rate[1], 64)
	s.done, _ = strconv.Atoi(total[1])
	s.latency, _ = strconv.ParseFloat(latency[1], 64)
	s.latency *= map[string]float64{"us": 1, "ms": 1e3, "s": 1e6}[latency[2]]
	if s.done == 0 {
		return sample{}, errors.New("no request was answered")
	}
	return s, nil
}

// processorTime is what a process and its children have used, user and system. The
// clock of a process is exact, where /proc/PID/stat counts hundredths of a second.
func processorTime(pid int) time.Duration {
	pids := []string{strconv.Itoa(pid)}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err == nil {
		pids = append(pids, strings.Fields(string(children))...)
	}
	var used time.Duration
	for _, text := range pids {
		pid, _ := strconv.Atoi(text)
		var now unix.Timespec
		if unix.ClockGettime(int32(^pid<<3|2), &now) == nil { // CPUCLOCK_SCHED of that process
			used += time.Duration(now.Nano())
		}
	}
	return used
}
