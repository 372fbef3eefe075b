package schema

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry/format"
)

// maxSchemas and maxPatternSize bound what one definition may hold.
const (
	maxSchemas     = 10_000
	maxPatternSize = 2_000 // instructions of the compiled pattern
)

// lint reports every keyword that validators would evaluate wrongly, differently, or
// not at all.
func (l *resolver) lint(d *document) {
	if len(d.all) > maxSchemas {
		l.report("", fmt.Sprintf("found %d schemas in one definition; expected at most %d", len(d.all), maxSchemas))
		return
	}
	for _, s := range d.all {
		object := s.object()
		if list, ok := object["enum"].([]any); ok && len(list) == 0 && !l.allowEmptyEnum {
			l.report(child(s.pointer, "enum"), "found an empty list, which no value can match; expected at least one value")
		}
		for _, name := range s.names {
			l.lintKeyword(s, name, object[name])
		}
		if _, has := object["$ref"]; has && d.dialect == draft7 {
			l.lintDraft7Ref(s)
		}
	}
}

func (l *resolver) lintKeyword(s *subschema, name string, value any) {
	at := func() string { return child(s.pointer, name) }
	def, known := keywords[name]
	switch {
	case strings.HasPrefix(name, "x-"):
		l.lintExtension(s, name, value)
		return
	case !known:
		message := "found the unknown keyword " + parser.Quote(name) +
			"; expected a keyword of JSON Schema 2020-12 or a name that begins with x-"
		if suggestion := suggestKeyword(name); suggestion != "" {
			message += " (did you mean " + suggestion + "?)"
		}
		l.report(at(), message)
		return
	case def.shape == unsupported:
		l.report(at(), "found "+name+": "+def.reason)
		return
	case def.only != "" && def.only != s.doc.dialect:
		l.report(at(), "found "+name+", which the dialect of $schema does not know; expected $schema "+def.only+" or none")
		return
	}
	switch name {
	case "$schema":
		l.lintDialect(s, at(), value)
	case "format":
		if f, _ := value.(string); !l.formatAnnotations && !format.Known(f) {
			l.report(at(), "found the unknown format "+parser.Quote(f)+"; expected one of "+strings.Join(format.Names(), ", "))
		}
	case "multipleOf":
		if d, ok := numberOf(value); ok && d.Sign() <= 0 {
			l.report(at(), "found a number that is not above 0; expected a number above 0")
		}
	case "pattern":
		if p, ok := value.(string); ok {
			l.lintPattern(at(), p)
		}
	case "patternProperties":
		members, _ := value.(map[string]any)
		for _, p := range slices.Sorted(maps.Keys(members)) {
			l.lintPattern(child(at(), p), p)
		}
	}
}

func (l *resolver) lintDialect(s *subschema, at string, value any) {
	uri, _ := value.(string)
	dialect, ok := dialectOf(uri)
	if !ok {
		l.report(at, "found "+parser.Quote(uri)+"; expected "+draft2020+" or "+draft7+"#")
	} else if dialect != s.doc.dialect {
		l.report(at, "found a second dialect in one document; expected "+s.doc.dialect)
	}
}

// lintDraft7Ref refuses keywords beside $ref: draft-07 ignores them and 2020-12
// asserts them.
func (l *resolver) lintDraft7Ref(s *subschema) {
	for _, name := range s.names {
		switch def := keywords[name]; {
		case name == "$ref", name == "$schema", def.shape == annotation, def.shape == definitions, strings.HasPrefix(name, "x-"):
		default:
			l.report(child(s.pointer, name), "found "+name+" beside $ref, where draft-07 ignores it; expected $schema "+draft2020+" or no "+name)
		}
	}
}

func (l *resolver) lintExtension(s *subschema, name string, value any) {
	switch name {
	case boundaryKey:
		if kind, ok := value.(string); !ok || kind == "" {
			l.report(child(s.pointer, name), "found "+kindOf(value)+"; expected the name of a boundary such as path, host or url")
		}
	case secretKey:
		if _, ok := value.(bool); !ok {
			l.report(child(s.pointer, name), "found "+kindOf(value)+"; expected true or false")
		}
	}
}

func (l *resolver) lintPattern(at, pattern string) {
	if _, err := regexp.Compile(RE2(pattern)); err != nil {
		reason := "not RE2"
		var syntaxErr *syntax.Error
		if errors.As(err, &syntaxErr) {
			reason = syntaxErr.Code.String()
		}
		l.report(at, "found the pattern "+parser.Quote(pattern)+" ("+reason+"); expected RE2 syntax, which has no look-around and no back references")
		return
	}
	if n := patternSize(RE2(pattern)); n > maxPatternSize {
		l.report(at, fmt.Sprintf("found a pattern of %d steps, too costly to evaluate; expected at most %d", n, maxPatternSize))
	}
}
