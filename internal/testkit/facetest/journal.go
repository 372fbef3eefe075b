package facetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
)

// Journal is a journal that a test reads, and that it can make refuse.
type Journal struct {
	mu      sync.Mutex
	records []audit.Record
	failing bool
}

// Append writes a record down.
func (l *Journal) Append(_ context.Context, r audit.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing {
		return refusal.New(refusal.AuditUnavailable, "m")
	}
	l.records = append(l.records, r)
	return nil
}

// SetFailing says whether it refuses from now on.
func (l *Journal) SetFailing(failing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = failing
}

// Records returns the written records, in order.
func (l *Journal) Records() []audit.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// Find are the records of a call that fit.
func (l *Journal) Find(id string, fit func(audit.Record) bool) (found []audit.Record) {
	for _, r := range l.Records() {
		if r.CallID == id && fit(r) {
			found = append(found, r)
		}
	}
	return found
}

// Lines are the records in short.
func (l *Journal) Lines() []string {
	var lines []string
	for _, r := range l.Records() {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s %s %s %s", r.Event, r.Mode, r.Verdict, r.Outcome, r.Code), " "))
	}
	return lines
}

// Clear forgets what was written down.
func (l *Journal) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = nil
}
