package telemetry

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// CallLabels say which names the counters of judgements and outcomes have as labels, beside their
// fixed vocabulary. The zero value is none. The names are the configuration's, as the kernel
// passes them on.
type CallLabels struct {
	// Which names series have: agent, tool or both; absent or [], none.
	Agent bool `key:"labels" example:"[agent, tool]"`
	Tool  bool // of the same key
	// How many series of both counters may have names; the rest are named other.
	MaxSeries int `key:"max_series" of:"how many series may have the name of an agent or a tool" range:"1..100000"`
}

// Beyond is the label of agents and tools for whose series there is no room.
const Beyond = "other"

// callKey is a series: the values of up to three fixed labels, an agent and a tool.
type callKey struct {
	fixed       [3]string
	agent, tool string
}

// callCounter is a counter of calls. It takes less than a vector's own lookup, and allocates
// nothing for a series that exists: each call counts twice.
type callCounter struct {
	vector *prometheus.CounterVec
	fixed  int // how many values of callKey.fixed are labels
	labels CallLabels
	room   *atomic.Int64 // how many series with names may still be added

	mu    sync.RWMutex
	found map[callKey]prometheus.Counter
}

func newCallCounter(create promauto.Factory, labels CallLabels, room *atomic.Int64, opts prometheus.CounterOpts, fixed []string) *callCounter {
	names := slices.Clone(fixed)
	if labels.Agent {
		names = append(names, "agent")
	}
	if labels.Tool {
		names = append(names, "tool")
	}
	return &callCounter{vector: create.NewCounterVec(opts, names), fixed: len(fixed), labels: labels, room: room, found: map[callKey]prometheus.Counter{}}
}

// count counts a call.
func (c *callCounter) count(key callKey) {
	if !c.labels.Agent {
		key.agent = ""
	}
	if !c.labels.Tool {
		key.tool = ""
	}
	counter := c.get(key)
	if counter == nil && key.named() && c.room.Load() <= 0 {
		key = key.beyond()
		counter = c.get(key)
	}
	if counter == nil {
		counter = c.add(key)
	}
	counter.Inc()
}

func (c *callCounter) get(key callKey) prometheus.Counter {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.found[key]
}

// add makes the series of a key, or finds no room for its names.
func (c *callCounter) add(key callKey) prometheus.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if counter := c.found[key]; counter != nil {
		return counter // another call has made it meanwhile
	}
	if key.named() && key != key.beyond() && c.room.Add(-1) < 0 {
		key = key.beyond()
	}
	counter := c.found[key]
	if counter == nil {
		values := append([]string{}, key.fixed[:c.fixed]...)
		if c.labels.Agent {
			values = append(values, key.agent)
		}
		if c.labels.Tool {
			values = append(values, key.tool)
		}
		counter = c.vector.WithLabelValues(values...)
		c.found[key] = counter
	}
	return counter
}

func (k callKey) named() bool { return k.agent != "" || k.tool != "" }

// beyond is the series of a key whose own has no room.
func (k callKey) beyond() callKey {
	if k.agent != "" {
		k.agent = Beyond
	}
	if k.tool != "" {
		k.tool = Beyond
	}
	return k
}
