package main

import (
	"container/list"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// callIDHeader names one call, however often it is sent.
	callIDHeader   = "Callgate-Call-Id"
	maxCallIDBytes = 128
	maxCalls       = 10_000
)

// hits counts requests. It is safe for concurrent use, and bounded: it knows
// the calls that were seen last, at most maxCalls, and how many it forgot.
type hits struct {
	now  func() time.Time
	file io.Writer // gets one line a hit; nil is none

	mu        sync.Mutex
	total     int64
	paths     map[string]int64
	calls     map[string]*list.Element
	order     *list.List // of *call, the one seen longest ago first
	forgotten int64
}

// call is how often one call id was seen, and where it was seen last.
type call struct {
	ID    string `json:"id"`
	Path  string `json:"path"`
	Count int64  `json:"count"`
}

// totals is what /hits answers.
type totals struct {
	Total     int64            `json:"total"`
	Paths     map[string]int64 `json:"paths"`
	Calls     []call           `json:"calls"` // the one seen longest ago first
	Forgotten int64            `json:"forgotten"`
}

func newHits(file io.Writer, now func() time.Time) *hits {
	return &hits{now: now, file: file, paths: map[string]int64{}, calls: map[string]*list.Element{}, order: list.New()}
}

// callID reads the one id of a call; none is "".
func callID(h http.Header) (string, *failure) {
	ids := h.Values(callIDHeader)
	switch {
	case len(ids) == 0:
		return "", nil
	case len(ids) > 1:
		return "", failed(http.StatusBadRequest, "found %d headers %s; expected at most one", len(ids), callIDHeader)
	case ids[0] == "" || len(ids[0]) > maxCallIDBytes:
		return "", failed(http.StatusBadRequest, "found a %s of %d bytes; expected 1 to %d", callIDHeader, len(ids[0]), maxCallIDBytes)
	}
	return ids[0], nil
}

// add writes a hit down and counts it. If that fails, it is not counted.
func (h *hits) add(path, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		line, err := json.Marshal(struct {
			Time string `json:"time"`
			Path string `json:"path"`
			ID   string `json:"call_id,omitempty"`
		}{h.now().UTC().Format(time.RFC3339Nano), path, id})
		if err != nil {
			return err
		}
		// One write of one whole line, which the kernel has when it returns: a
		// process that is killed afterwards does not take it along.
		if _, err := h.file.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	h.total++
	h.paths[path]++
	if id != "" {
		h.seen(path, id)
	}
	return nil
}

func (h *hits) seen(path, id string) {
	if e, ok := h.calls[id]; ok {
		c := e.Value.(*call)
		c.Path = path
		c.Count++
		h.order.MoveToBack(e)
		return
	}
	if len(h.calls) == maxCalls {
		oldest := h.order.Front()
		delete(h.calls, h.order.Remove(oldest).(*call).ID)
		h.forgotten++
	}
	h.calls[id] = h.order.PushBack(&call{id, path, 1})
}

// report is a copy of what was counted.
func (h *hits) report() totals {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := totals{Total: h.total, Paths: map[string]int64{}, Calls: make([]call, 0, h.order.Len()), Forgotten: h.forgotten}
	for path, n := range h.paths {
		t.Paths[path] = n
	}
	for e := h.order.Front(); e != nil; e = e.Next() {
		t.Calls = append(t.Calls, *e.Value.(*call))
	}
	return t
}
