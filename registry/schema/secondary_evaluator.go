package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"github.com/kaptinlin/jsonschema"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/registry/format"
)

// secondary is the secondary evaluator: kaptinlin/jsonschema on the same closed schema.
//
// Its known defects are fenced off here. It fetches references while it
// compiles: the loaders are removed. It accepts everything where a reference
// leads nowhere: such a schema is refused. It hands out another schema where
// two share an identifier: each schema has a compiler of its own, and bundles
// have no identifiers. It writes to a compiled schema while it evaluates if that
// has patterns: such a schema is evaluated by copies, each by one goroutine at a
// time. It ignores format unless told. It can panic: that is a refusal. It
// compares with the values of an enum one after another: a long one is left to
// the primary evaluator where it can only narrow, and counted elsewhere (see secondaryCost).
type secondary struct {
	bundle []byte
	shared *jsonschema.Schema      // nil: evaluated by copies
	copies chan *jsonschema.Schema // free copies
	large  chan struct{}           // one place: see accepts
}

var (
	errDisagree = errors.New("the secondary evaluator refuses what the first accepts")
	errPanicked = errors.New("the secondary evaluator panicked")
)

// largeSteps is the work from which on evaluations are made one at a time: the
// secondary evaluator needs memory of about a quarter of a kilobyte a step.
const largeSteps = 40_000

func newSecondary(bundle any, patterned bool, large chan struct{}) (*secondary, error) {
	raw, err := json.Marshal(bundle)
	if err != nil {
		return nil, err
	}
	w := &secondary{bundle: raw, large: large}
	first, err := w.compile()
	if err != nil {
		return nil, err
	}
	if !patterned {
		w.shared = first
		return w, nil
	}
	w.copies = make(chan *jsonschema.Schema, runtime.GOMAXPROCS(0))
	w.copies <- first
	return w, nil
}

func (w *secondary) compile() (s *jsonschema.Schema, err error) {
	defer safe.Catch(func(error) { s, err = nil, errPanicked })
	c := jsonschema.NewCompiler().SetAssertFormat(true)
	clear(c.Loaders)
	for _, f := range format.All() {
		c.RegisterFormat(f.Name, func(v any) bool {
			text, ok := v.(string)
			return !ok || f.Valid(text)
		})
	}
	s, err = c.Compile(w.bundle)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("the secondary evaluator compiled nothing")
	}
	if lost := s.UnresolvedReferenceURIs(); len(lost) > 0 {
		return nil, fmt.Errorf("the secondary evaluator does not find %d references", len(lost))
	}
	return s, nil
}

// accepts reports whether the secondary evaluator accepts a value too; steps is what it
// needs, as an exhaustive evaluation counts them.
func (w *secondary) accepts(v any, steps int) error {
	if steps > largeSteps {
		w.large <- struct{}{}
		defer func() { <-w.large }()
	}
	s := w.shared
	if s == nil {
		select {
		case s = <-w.copies:
		default:
			fresh, err := w.compile()
			if err != nil {
				return err
			}
			s = fresh
		}
		defer func() {
			select {
			case w.copies <- s:
			default:
			}
		}()
	}
	return validateSecondary(s, v)
}

func validateSecondary(s *jsonschema.Schema, v any) (err error) {
	defer safe.Catch(func(error) { err = errPanicked })
	// ValidateStruct evaluates a value of any kind as it is; Validate would take
	// some for JSON text.
	if result := s.ValidateStruct(v); result == nil || !result.IsValid() {
		return errDisagree
	}
	return nil
}
