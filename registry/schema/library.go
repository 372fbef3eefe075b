package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/kaptinlin/jsonschema"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/registry/format"
)

// library is kaptinlin/jsonschema on a closed schema. It decides about every value that the program of
// a plain schema does not accept.
//
// Its known defects are fenced off here. It fetches references while it
// compiles: the loaders are removed. It accepts everything where a reference
// leads nowhere: such a schema is refused. It hands out another schema where
// two share an identifier: each schema has a compiler of its own, and bundles
// have no identifiers. It writes to a compiled schema while it evaluates if that
// has patterns: such a schema is evaluated by copies, each by one goroutine at a
// time. It ignores format unless told. It can panic: that is a refusal. What else it would take wrongly
// does not reach it: see bundler, builder and the lint. It takes no short cuts and knows no bounds: what it
// costs is counted before (see costOf).
type library struct {
	bundle []byte
	shared *jsonschema.Schema      // nil: evaluated by copies
	copies chan *jsonschema.Schema // free copies
	large  chan struct{}           // one place: see judge
}

var (
	errPanicked = errors.New("kaptinlin/jsonschema panicked")
	errNothing  = errors.New("kaptinlin/jsonschema gave no result")
)

// largeSteps is the work from which on values are judged one at a time: the library needs memory of about
// a quarter of a kilobyte a step.
const largeSteps = 40_000

func newLibrary(bundle any, patterned bool, large chan struct{}) (*library, error) {
	raw, err := json.Marshal(bundle)
	if err != nil {
		return nil, err
	}
	w := &library{bundle: raw, large: large}
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

func (w *library) compile() (s *jsonschema.Schema, err error) {
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
		return nil, errors.New("kaptinlin/jsonschema compiled nothing")
	}
	if lost := s.UnresolvedReferenceURIs(); len(lost) > 0 {
		return nil, fmt.Errorf("kaptinlin/jsonschema does not find %d references", len(lost))
	}
	return s, nil
}

// judge evaluates a value, which takes as many steps as costOf says, and hands the result to read.
func (w *library) judge(v any, steps int, read func(*jsonschema.EvaluationResult)) error {
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
	return evaluate(s, v, read)
}

func evaluate(s *jsonschema.Schema, v any, read func(*jsonschema.EvaluationResult)) (err error) {
	defer safe.Catch(func(error) { err = errPanicked })
	// ValidateStruct evaluates a value of any kind as it is; Validate would take
	// some for JSON text.
	result := s.ValidateStruct(v)
	if result == nil {
		return errNothing
	}
	read(result)
	return nil
}

// shortCause keeps one line of the author's own text.
func shortCause(err error) string {
	line, _, _ := strings.Cut(strings.ReplaceAll(fmt.Sprint(err), baseURI, ""), "\n")
	return text.Shorten(line, maxText)
}
