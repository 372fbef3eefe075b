package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/registry/internal/lexical"
)

// noLoader is a loader of no documents: nothing is ever fetched.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("nothing is fetched")
}

// checkMetaschema has an independent implementation compile the definition as
// its author wrote it, which includes its metaschema and its references.
func checkMetaschema(raw any, dialect string) (f *Fault) {
	defer safe.Catch(func(error) {
		f = &Fault{"", "found a schema that a second validator cannot read; expected one that it can"}
	})
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) { return regexp.Compile(RE2(pattern)) })
	c.DefaultDraft(jsonschema.Draft2020)
	if dialect == draft7 {
		c.DefaultDraft(jsonschema.Draft7)
	}
	if err := c.AddResource(baseURI, raw); err != nil {
		return compileFault(err)
	}
	if _, err := c.Compile(baseURI); err != nil {
		return compileFault(err)
	}
	return nil
}

// compileFault turns an error of the metaschema into a fault at its place.
func compileFault(err error) *Fault {
	var against *jsonschema.SchemaValidationError
	if errors.As(err, &against) {
		err = against.Err
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return &Fault{"", "found a schema that does not compile; expected JSON Schema 2020-12 (" + shortCause(err) + ")"}
	}
	for len(invalid.Causes) > 0 {
		deepest := invalid.Causes[0]
		for _, cause := range invalid.Causes[1:] {
			if len(cause.InstanceLocation) > len(deepest.InstanceLocation) {
				deepest = cause
			}
		}
		invalid = deepest
	}
	pointer := ""
	for _, t := range invalid.InstanceLocation {
		pointer = child(pointer, t)
	}
	reason := "expected another value"
	if e := invalid.DetailedOutput().Error; e != nil {
		reason = lexical.Cut(e.String())
	}
	return &Fault{pointer, "found a value that the metaschema forbids: " + reason}
}

// shortCause keeps one line of the author's own text.
func shortCause(err error) string {
	line, _, _ := strings.Cut(strings.ReplaceAll(fmt.Sprint(err), baseURI, ""), "\n")
	return lexical.Cut(line)
}
