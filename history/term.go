package history

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/duration"
)

// Kind is what a term counts.
type Kind uint8

// The kinds of terms.
const (
	// Calls counts calls that were let through: in flight, ended, of unknown outcome and handed over, and the call that is
	// judged.
	Calls Kind = iota
	// Sum adds a member of the arguments of the same calls.
	Sum
	// Results counts calls that have ended with a result, and those handed over by an earlier answer.
	Results
	// Threads counts the threads that a caller has begun. No condition asks it.
	Threads
)

var kindNames = [...]string{Calls: "calls", Sum: "sum", Results: "results", Threads: "threads"}

// The bounds of a window, and the number of steps in which it moves: a window looks at the step that runs and at as many
// before it.
const (
	MinWindow = time.Minute
	MaxWindow = 7 * 24 * time.Hour
	steps     = 60
)

// MaxKeys bounds the keys of a term.
const MaxKeys = 16

// Term is one thing that conditions ask of the past. All of it is known when the policy is loaded.
type Term struct {
	Caller bool // of all threads of the caller; else of the thread
	Kind   Kind
	Tool   string        // the name of a tool, or a pattern of names
	Member string        // of a Sum: the argument that is added up
	Keys   []string      // the arguments that must have given values, sorted
	Window time.Duration // how far back it looks; 0: to the beginning of the thread
}

// String is the term as a condition writes it, without the values of its keys: thread.sum('pay','amount',{'currency'},'24h').
// Two terms are the same if their texts are. It is printable ASCII.
func (t Term) String() string {
	var b strings.Builder
	if t.Caller {
		b.WriteString("caller.")
	} else {
		b.WriteString("thread.")
	}
	b.WriteString(kindNames[t.Kind] + "(" + quote(t.Tool))
	if t.Kind == Sum {
		b.WriteString("," + quote(t.Member))
	}
	for i, key := range t.Keys {
		if i == 0 {
			b.WriteString(",{")
		} else {
			b.WriteString(",")
		}
		b.WriteString(quote(key))
	}
	if len(t.Keys) > 0 {
		b.WriteString("}")
	}
	if t.Window > 0 {
		b.WriteString(",'" + duration.Spell(t.Window) + "'")
	}
	b.WriteString(")")
	return b.String()
}

func quote(s string) string {
	q := strconv.QuoteToASCII(s)
	return "'" + strings.ReplaceAll(q[1:len(q)-1], "'", `\x27`) + "'"
}

// unquote reads what quote wrote at the beginning of a text.
func unquote(text string) (s, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "'")
	if !ok {
		return "", "", false
	}
	in, rest, ok := strings.Cut(text, "'")
	if !ok {
		return "", "", false
	}
	s, err := strconv.Unquote(`"` + in + `"`)
	return s, rest, err == nil
}

// ID names a term in a State: eight bytes of the digest of its text.
type ID uint64

// ID is the name of the term.
func (t Term) ID() ID { return idOf(t.String()) }

func idOf(text string) ID {
	sum := sha256.Sum256([]byte(text))
	return ID(binary.BigEndian.Uint64(sum[:]))
}

func (t Term) validate() error {
	switch {
	case int(t.Kind) >= len(kindNames):
		return errors.New("it counts nothing that there is")
	case t.Tool == "":
		return errors.New("it names no tool")
	case (t.Kind == Sum) != (t.Member != ""):
		return errors.New("a sum names the member that it adds up, and nothing else does")
	case len(t.Keys) > MaxKeys:
		return fmt.Errorf("it has %d keys, and may have %d", len(t.Keys), MaxKeys)
	case !slices.IsSorted(t.Keys) || len(slices.Compact(slices.Clone(t.Keys))) != len(t.Keys):
		return errors.New("its keys are not in their order, or one is there twice")
	case t.Window != 0 && (t.Window < MinWindow || t.Window > MaxWindow):
		return fmt.Errorf("its window is %s, expected %s to %s", duration.Spell(t.Window), duration.Spell(MinWindow), duration.Spell(MaxWindow))
	case t.Caller && t.Window == 0:
		return errors.New("a term of the caller has a window")
	case !t.Caller && t.Kind == Threads:
		return errors.New("a caller begins threads, and no thread does")
	case t.Caller && t.Kind == Results:
		return errors.New("results are of a thread, not of a caller")
	}
	return nil
}

// readTerm reads what Term.String wrote at the beginning of a text.
func readTerm(text string) (t Term, rest string, ok bool) {
	if rest, t.Caller = strings.CutPrefix(text, "caller."); !t.Caller {
		if rest, ok = strings.CutPrefix(text, "thread."); !ok {
			return t, "", false
		}
	}
	name, rest, ok := strings.Cut(rest, "(")
	kind := slices.Index(kindNames[:], name)
	if !ok || kind < 0 {
		return t, "", false
	}
	t.Kind = Kind(kind)
	if t.Tool, rest, ok = unquote(rest); !ok {
		return t, "", false
	}
	if t.Kind == Sum {
		if rest, ok = strings.CutPrefix(rest, ","); ok {
			t.Member, rest, ok = unquote(rest)
		}
		if !ok {
			return t, "", false
		}
	}
	if keys, has := strings.CutPrefix(rest, ",{"); has {
		for more := true; more; keys, more = strings.CutPrefix(keys, ",") {
			var key string
			if key, keys, ok = unquote(keys); !ok {
				return t, "", false
			}
			t.Keys = append(t.Keys, key)
		}
		if rest, ok = strings.CutPrefix(keys, "}"); !ok {
			return t, "", false
		}
	}
	if window, has := strings.CutPrefix(rest, ","); has {
		var text string
		if text, rest, ok = unquote(window); !ok {
			return t, "", false
		}
		if t.Window, ok = duration.Read(text); !ok {
			return t, "", false
		}
	}
	rest, ok = strings.CutPrefix(rest, ")")
	return t, rest, ok && t.validate() == nil
}

// step is the number of the step of the window that a time is in; 0 without a window.
func (t *Term) step(at time.Time) int64 {
	if t.Window == 0 {
		return 0
	}
	return at.UnixMicro() / (t.Window / steps).Microseconds()
}
