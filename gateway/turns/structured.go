package turns

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// Structured outputs: an answer that the request asks to be JSON is judged as the arguments of a call are. What is asked
// for is read here, of every wire; divide says which answers are judged by it, and the kernel does so.

// The schemas that stand for requests without one.
const (
	anyObject = `{"type":"object"}`
	anyJSON   = `true`
)

// readStructured reads the form that a request asks its answer to have, at one of the places of its wire. Its error is a
// *Failure.
func (r *Run) readStructured(places [][]string, members rawjson.Object) error {
	if r.Route.Rules.StructuredOutput == upstream.Pass {
		return nil
	}
	var stated []string // where
	var form rawjson.Object
	for _, place := range places {
		found, err := formAt(place, members)
		switch {
		case err != nil:
			return err
		case found == nil:
		case stated != nil:
			return Bad(strings.Join(place, "."), "%q and %q both state the form of the answer. Send one of them.",
				strings.Join(stated, "."), strings.Join(place, "."))
		default:
			stated, form = place, found
		}
	}
	if form == nil {
		return nil
	}
	otherwise := anyJSON
	switch kind, _ := rawjson.String(form.Get("type")); kind {
	case "json_object":
		otherwise = anyObject
	case "json_schema":
	default:
		return nil // prose, or a form that the provider alone knows
	}
	at, text := schemaIn(form, stated)
	if rawjson.IsNull(text) {
		text = []byte(otherwise)
	}
	compiled, faults, err := r.Admission.AnswerSchema(text)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return Bad(strings.Join(at, "."), "The answer cannot be judged strictly by the schema that the request asks for: at %s %s. Change the schema; or the operator lets such answers pass unjudged, with structured_output: pass at the upstream %s.",
			refusal.Pointer(at...)+faults[0].Pointer, faults[0].Message, r.Route.Upstream)
	}
	r.output = compiled
	return nil
}

// formAt is the object at a place of a request; nil: there is none.
func formAt(place []string, o rawjson.Object) (rawjson.Object, error) {
	for i, name := range place {
		value := o.Get(name)
		if rawjson.IsNull(value) {
			return nil, nil
		}
		var ok bool
		if o, ok = rawjson.Members(value); !ok {
			return nil, Bad(strings.Join(place[:i+1], "."), "%q must be an object.", strings.Join(place[:i+1], "."))
		}
	}
	return o, nil
}

// schemaIn is the schema of a form, and where it stands: in it, or in its member "json_schema". nil: there is none.
func schemaIn(form rawjson.Object, place []string) (at []string, text []byte) {
	at = slices.Clone(place)
	if inner, ok := rawjson.Members(form.Get("json_schema")); ok {
		form, at = inner, append(at, "json_schema")
	}
	return append(at, "schema"), form.Get("schema")
}
