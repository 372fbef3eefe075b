package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxEqual is how many calls of a thread, and how many results, equal ones are looked for in: the last of each.
const MaxEqual = 64

// made is a call of a thread, or the result of one. Calls are the same whose digests are equal, and so are results.
type made struct {
	at           int64 // in microseconds
	call, result uint64
}

func (m made) compare(other made) int {
	return cmp.Or(cmp.Compare(m.at, other.at), cmp.Compare(m.call, other.call), cmp.Compare(m.result, other.result))
}

// note replaces the calls or the results of the thread. Their order is not that in which they are noted.
func (s *State) note(a *Adds, sign int64) {
	of := &s.results
	if a.Result == 0 {
		of, s.calls = &s.made, max(0, s.calls+sign)
	}
	m := made{a.At.UnixMicro(), a.Equal, a.Result}
	i, found := slices.BinarySearchFunc(*of, m, made.compare)
	switch {
	case sign > 0 && len(*of) < MaxEqual:
		*of = slices.Insert(slices.Clip(*of), i, m)
	case sign > 0 && i > 0: // the oldest goes
		*of = slices.Concat((*of)[1:i], []made{m}, (*of)[i:])
	case sign < 0 && found:
		*of = slices.Concat((*of)[:i], (*of)[i+1:])
	}
}

// Calls is how many calls of the thread were let through since they are counted.
func (s *State) Calls() int64 { return s.calls }

// Equals looks for a call, by its digest, in the last MaxEqual of the thread that are not before a time. same is how many of its
// results on end, up to the last one, are equal, in the last MaxEqual results.
func (s *State) Equals(call uint64, since time.Time) (calls, same int) {
	oldest := since.UnixMicro()
	for _, m := range s.made {
		if m.call == call && m.at >= oldest {
			calls++
		}
	}
	last := uint64(0)
	for _, m := range slices.Backward(s.results) {
		switch {
		case m.call != call:
			continue
		case m.at < oldest || last != 0 && m.result != last:
			return calls, same
		}
		last = m.result
		same++
	}
	return calls, same
}

// Begins adds that the caller begins a thread, which is counted for a window.
func (a *Adds) Begins(window time.Duration) {
	a.amounts = append(slices.Clip(a.amounts), amount{counted: begun(window), n: 1})
}

// Begun is how many threads the caller has begun in a window.
func (s *State) Begun(window time.Duration, now time.Time) int64 {
	n, ok := s.value(begun(window), 0, now)
	if !ok {
		return math.MaxInt64
	}
	return n
}

func begun(window time.Duration) *counted {
	t := Term{Caller: true, Kind: Threads, Tool: "*", Window: window}
	return &counted{t, t.ID(), t.String()}
}

const (
	equalPrefix  = "equal:"
	resultPrefix = "result:"
)

// equalText is the digest of a call, or that of a call and of its result.
func (a *Adds) equalText() string {
	if a.Result == 0 {
		return fmt.Sprintf(equalPrefix+"%016x", a.Equal)
	}
	return fmt.Sprintf(resultPrefix+"%016x=%016x", a.Equal, a.Result)
}

// readEqual reads what equalText wrote. ok is false where the text is something else.
func (a *Adds) readEqual(text string) (ok bool, err error) {
	call, ok := strings.CutPrefix(text, equalPrefix)
	if !ok {
		if text, ok = strings.CutPrefix(text, resultPrefix); !ok {
			return false, nil
		}
		var result string
		call, result, _ = strings.Cut(text, "=")
		if a.Result, err = readDigest(result); err != nil {
			return true, err
		}
	}
	if a.Equal != 0 {
		return true, errNoAdds
	}
	a.Equal, err = readDigest(call)
	return true, err
}

// readDigest reads sixteen digits of which one at least is not zero.
func readDigest(text string) (uint64, error) {
	digest, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) != 16 || digest == 0 {
		return 0, errNoAdds
	}
	return digest, nil
}
