package history

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Adds are what one call, or its result, adds to its thread and to its caller. They are not changed once they are
// applied. The zero value adds nothing.
type Adds struct {
	// At is when it is added: windows move by it.
	At time.Time
	// Labels are added to the thread, each once.
	Labels []string
	// Call is the id of the call: a label names the first that has added it. It is no part of the texts.
	Call string
	// Equal is the digest of the call, where equal calls of the thread are counted, and Result that of its result, where it
	// is the result that adds it; 0: none.
	Equal, Result uint64

	amounts []amount
}

// amount is what is added to a term, for one list of values of its keys.
type amount struct {
	*counted
	key uint64
	n   int64 // of a Sum in millionths; inexact: it cannot be known
}

// inexact is an amount, or a sum, of which nothing can be known any more.
const inexact = math.MinInt64

// The bounds of a label.
const (
	MaxLabels = 64 // of a thread
	maxLabel  = 64 // bytes
)

// Empty reports whether nothing is added.
func (a *Adds) Empty() bool { return len(a.amounts) == 0 && len(a.Labels) == 0 && a.Equal == 0 }

// Changes reports whether something is added to the thread, or to the caller.
func (a *Adds) Changes(caller bool) bool {
	if !caller && (len(a.Labels) > 0 || a.Equal != 0) {
		return true
	}
	for i := range a.amounts {
		if a.amounts[i].Caller == caller {
			return true
		}
	}
	return false
}

// OfCaller is what is added to the caller: all that a call in no thread adds.
func (a Adds) OfCaller() Adds {
	a.Labels, a.Equal = nil, 0
	a.amounts = slices.DeleteFunc(slices.Clone(a.amounts), func(add amount) bool { return !add.Caller })
	return a
}

const (
	atPrefix    = "at:"
	labelPrefix = "label:"
	inexactText = "?"
)

// Texts are the adds as the audit log has them, each of printable ASCII: when, then what is added to each term, with the
// digest of the values of its keys, the labels, and the digest of the call. They are nil where nothing is added.
//
//	at:2026-11-28T19:30:00.5Z
//	thread.sum('pay','amount',{'currency'})#9f2c0011aabbccdd=50
//	label:untrusted
//	equal:77ab0011aabbccdd
func (a *Adds) Texts() []string {
	if a.Empty() {
		return nil
	}
	texts := make([]string, 0, 1+len(a.amounts)+len(a.Labels))
	at := make([]byte, 0, 64) // on the stack
	texts = append(texts, string(a.At.UTC().Truncate(time.Microsecond).AppendFormat(append(at, atPrefix...), time.RFC3339Nano)))
	for i := range a.amounts {
		texts = append(texts, valueText(a.amounts[i].counted, a.amounts[i].key, a.amounts[i].n))
	}
	for _, label := range a.Labels {
		texts = append(texts, labelPrefix+label)
	}
	if a.Equal != 0 {
		texts = append(texts, a.equalText())
	}
	return texts
}

// valueText is a term with the digest of its keys and a value.
func valueText(c *counted, key uint64, n int64) string {
	text := c.text
	if len(c.Keys) > 0 {
		text += fmt.Sprintf("#%016x", key)
	}
	switch {
	case n == inexact:
		return text + "=" + inexactText
	case c.Kind == Sum:
		return text + "=" + Decimal(n)
	}
	value := make([]byte, 0, 24) // on the stack
	return text + string(strconv.AppendInt(append(value, '='), n, 10))
}

var errNoAdds = errors.New("it is nothing that a call adds")

// ReadAdds reads what Texts wrote.
func ReadAdds(texts []string) (Adds, error) {
	var a Adds
	for i, text := range texts {
		if err := a.read(text, i == 0); err != nil {
			return Adds{}, fmt.Errorf("%.200q: %w", text, err)
		}
	}
	return a, nil
}

func (a *Adds) read(text string, first bool) (err error) {
	if at, ok := strings.CutPrefix(text, atPrefix); ok != first {
		return errNoAdds
	} else if ok {
		a.At, err = time.Parse(time.RFC3339Nano, at)
		return err
	}
	if label, ok := strings.CutPrefix(text, labelPrefix); ok {
		if label == "" || len(label) > maxLabel || len(a.Labels) == MaxLabels {
			return errNoAdds
		}
		a.Labels = append(a.Labels, label)
		return nil
	}
	if ok, err := a.readEqual(text); ok {
		return err
	}
	term, rest, ok := readTerm(text)
	if !ok || len(a.amounts) > MaxTerms { // those of all terms, and a thread that is begun
		return errNoAdds
	}
	add := amount{counted: &counted{term, term.ID(), term.String()}}
	if len(term.Keys) > 0 {
		if len(rest) < 17 || rest[0] != '#' {
			return errNoAdds
		}
		if add.key, err = readDigest(rest[1:17]); err != nil {
			return err
		}
		rest = rest[17:]
	}
	value, ok := strings.CutPrefix(rest, "=")
	switch {
	case !ok:
		return errNoAdds
	case value == inexactText && term.Kind == Sum:
		add.n = inexact
	case term.Kind == Sum:
		if add.n = readMillionths(value); add.n == inexact {
			return errNoAdds
		}
	default:
		if add.n, err = strconv.ParseInt(value, 10, 64); err != nil || add.n != 1 {
			return errNoAdds
		}
	}
	a.amounts = append(a.amounts, add)
	return nil
}
