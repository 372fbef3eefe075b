package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// printMemory makes calls without keys to each of some fresh gateways, and prints
// their resident memory at the start, half way and at the end. What still grows in
// the second half is not bounded yet.
func printMemory(ctx context.Context, gateways []*subject, calls int) error {
	fmt.Printf("\nresident memory, MB, after calls without keys\n%-9s %8s %8d %8d   %8s   second half\n", "", "start", calls/2, calls,
		"growth")
	for _, s := range gateways {
		var at [3]float64
		for i := range at {
			var err error
			if i > 0 {
				err = s.callTimes(ctx, calls*i/2-calls*(i-1)/2)
			}
			if err == nil {
				at[i], err = residentBytes(s.pid)
			}
			if err != nil {
				return fmt.Errorf("memory, %s: %w", s.name, err)
			}
		}
		fmt.Printf("%-9s %8.0f %8.0f %8.0f   %8.0f   %.0f bytes a call\n", s.name, at[0]/1e6, at[1]/1e6, at[2]/1e6, (at[2]-at[0])/1e6,
			(at[2]-at[1])/float64(calls-calls/2))
	}
	return nil
}

// callTimes makes so many calls, over 32 connections.
func (s *subject) callTimes(ctx context.Context, calls int) error {
	var left atomic.Int64
	left.Store(int64(calls))
	return together(32, func() bool { return left.Add(-1) >= 0 }, func(client *http.Client) error {
		r, err := post(ctx, client, s.url, "text/plain", completion)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("%w: %s", errStatus, r.Status)
		}
		_, err = io.Copy(io.Discard, r.Body)
		return err
	})
}

// residentBytes is the memory of a process that is resident.
func residentBytes(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm: found %q", pid, text)
	}
	pages, err := strconv.Atoi(fields[1])
	return float64(pages) * float64(os.Getpagesize()), err
}
