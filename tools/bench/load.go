package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// subject is one of the things that are measured.
type subject struct {
	name   string
	pid    int
	script string // for wrk
	url    string
	sample
}

// sample is what was measured of a subject at one number of connections.
type sample struct {
	rates     []float64 // requests a second
	costs     []float64 // processor microseconds a request
	latencies []float64 // medians, in microseconds
}

// reference is the subject whose figures are 1.
const reference = "tuned"

func bench(program string, rounds, seconds int, counts []int) error {
	h, wrk, err := newHall()
	if err != nil {
		return err
	}
	defer h.close()
	subjects, err := h.start(program)
	if err != nil {
		return err
	}
	for _, connections := range counts {
		for _, s := range subjects {
			s.sample = sample{}
		}
		for round := range rounds {
			for _, s := range subjects {
				if err := s.load(wrk, seconds, connections); err != nil {
					return err
				}
			}
			fmt.Fprintf(os.Stderr, "%d connections: round %d of %d\n", connections, round+1, rounds)
		}
		fmt.Printf("%d connections, medians of %d times %d s\n", connections, rounds, seconds)
		printTable(subjects)
	}
	return nil
}

// load loads a subject once.
func (s *subject) load(wrk string, seconds, connections int) error {
	before := processorTime(s.pid)
	out, err := exec.Command(wrk, "-t1", "-c"+strconv.Itoa(connections), "-d"+strconv.Itoa(seconds)+"s", "--latency", "-s", s.script, s.url).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wrk: %w: %s", err, out)
	}
	got, err := readWrk(string(out))
	if err != nil {
		return fmt.Errorf("%s: %w: %s", s.name, err, out)
	}
	s.rates = append(s.rates, got.rate)
	s.costs = append(s.costs, float64((processorTime(s.pid)-before).Microseconds())/got.requests)
	s.latencies = append(s.latencies, got.latency)
	return nil
}

// printTable prints the medians, and their ratios to those of the reference.
func printTable(subjects []*subject) {
	base := subjects[slices.IndexFunc(subjects, func(s *subject) bool { return s.name == reference })]
	fmt.Printf("%-10s %12s %7s %14s %7s %10s %7s\n", "", "requests/s", "ratio", "µs processor", "ratio", "p50 µs", "ratio")
	for _, s := range subjects {
		rate, cost, latency := median(s.rates), median(s.costs), median(s.latencies)
		fmt.Printf("%-10s %12.0f %7.2f %14.1f %7.2f %10.0f %7.2f\n", s.name,
			rate, rate/median(base.rates), cost, cost/median(base.costs), latency, latency/median(base.latencies))
	}
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

var (
	wrkRate    = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkTotal   = regexp.MustCompile(`([0-9]+) requests in`)
	wrkLatency = regexp.MustCompile(`50%\s+([0-9.]+)(us|ms|s)`)
)

// wrkResult is what wrk printed: requests a second and in all, and the median latency in
// microseconds.
type wrkResult struct{ rate, requests, latency float64 }

// readWrk reads the output of wrk. Any answer but 2xx is an error: a refusal costs little.
func readWrk(out string) (wrkResult, error) {
	if strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
		return wrkResult{}, errors.New("requests failed")
	}
	rate, total, latency := wrkRate.FindStringSubmatch(out), wrkTotal.FindStringSubmatch(out), wrkLatency.FindStringSubmatch(out)
	if rate == nil || total == nil || latency == nil {
		return wrkResult{}, errors.New("wrk printed no figures")
	}
	var r wrkResult
	r.rate, _ = strconv.ParseFloat(rate[1], 64)
	r.requests, _ = strconv.ParseFloat(total[1], 64)
	r.latency, _ = strconv.ParseFloat(latency[1], 64)
	r.latency *= map[string]float64{"us": 1, "ms": 1e3, "s": 1e6}[latency[2]]
	return r, nil
}

// processorTime is what a process and its children have used.
func processorTime(pid int) time.Duration {
	pids := []string{strconv.Itoa(pid)}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err == nil {
		pids = append(pids, strings.Fields(string(children))...)
	}
	var ticks int
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		ticks += user + system
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	return time.Duration(ticks) * tick
}
