package toolimport

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// parameter is one parameter of an operation.
type parameter struct {
	document.Node // the parameter
	in, name      string
	required      bool
}

// parameters reads the parameters of the operation and those of its path that it does not
// override. Those of the path come first, so their names stay unchanged.
func (o *operation) parameters() {
	var all []parameter
	for _, from := range []document.Node{o.node, o.item} {
		own := len(all)
		_, list, ok := from.Child("parameters")
		if !ok {
			continue
		}
		list.List("parameters", func(_ int, item document.Node) {
			p, ok := o.parameter(item)
			same := slices.IndexFunc(all, func(q parameter) bool { return q.in == p.in && q.name == p.name })
			switch {
			case !ok || same >= 0 && same < own:
			case same >= own:
				o.reportFault(item, "found the parameter %q of %s a second time; expected it once", p.name, p.in)
			default:
				all = append(all, p)
			}
		})
	}
	for _, in := range []string{"path", "query", "header"} {
		for _, p := range all {
			if p.in == in {
				o.place(p)
			}
		}
	}
	for _, p := range all {
		if p.in == "cookie" {
			o.leaveOut(p.Node, p.required, fmt.Sprintf("found the cookie %q, and no argument is sent as one; expected a query or a header",
				p.name))
		}
	}
}

// parameter reads the common members of parameters.
func (o *operation) parameter(item document.Node) (p parameter, ok bool) {
	n, problem := o.follow(item)
	if problem != "" {
		o.reportFault(item, "%s", problem)
		return p, false
	}
	if !o.checkKeys(n, "a parameter", "name", "in", "description", "required", "deprecated", "allowEmptyValue", "style", "explode",
		"allowReserved", "schema", "content", "example", "examples") {
		return p, false
	}
	p.Node = n
	p.name, p.in = n.StringAt("name"), n.StringAt("in")
	if p.name == "" || !slices.Contains([]string{"path", "query", "header", "cookie"}, p.in) {
		o.reportFault(n, "found a parameter without a name, or in no known place; expected a name and in: path, query, header or cookie")
		return p, false
	}
	p.required = o.flag(n, "required", false)
	return p, true
}

// ignoredHeaders are no parameters, says OpenAPI, even where they are stated.
var ignoredHeaders = []string{"accept", "content-type", "authorization"}

// place makes an argument of a parameter.
func (o *operation) place(p parameter) {
	switch {
	case o.isAPIKey(p.in, p.name):
		o.reportChange(p.Node, "found the %s parameter %q, which a security scheme names; it was left out: no argument is a credential",
			p.in, p.name)
		return
	case p.in == "header" && slices.Contains(ignoredHeaders, strings.ToLower(p.name)):
		o.reportChange(p.Node, "found the header %q, which is no parameter in OpenAPI; it was left out", p.name)
		return
	case p.in == "header" && registry.ReservedHeader(p.name):
		o.leaveOut(p.Node, p.required, fmt.Sprintf("skipped header %q: the gateway sets it itself", p.name))
		return
	case p.in == "path" && (!registry.ValidPlaceholder(p.name) || strings.Count(o.path, "{"+p.name+"}") != 1):
		o.reportFault(p.Node, "found the path parameter %q; expected a name of letters, digits, _, - and dots, which stands in braces in the path once", p.name)
		return
	}
	argument := tool.Parameter{Argument: p.name, In: p.in}
	if o.argumentNames[p.name] {
		argument.Argument, argument.Name = p.in+"_"+p.name, p.name
		o.reportChange(p.Node, "found two parameters %q; that of the %s is the argument %q", p.name, p.in, argument.Argument)
	}
	_, stated, ok := p.Child("schema")
	if !ok {
		o.reportFault(p.Node, "found the parameter %q without a schema; expected a schema of its value: what a content says of it is not read", p.name)
		return
	}
	list, ok := o.list(p, stated)
	if !ok || !o.styled(p) {
		return
	}
	if list && (p.in != "query" || !o.flag(p.Node, "explode", true)) {
		argument.Join = "comma"
	}
	if o.argumentNames[argument.Argument] {
		o.reportFault(p.Node, "found the parameter %q, for which no name is free; expected other names", p.name)
		return
	}
	if p.required || p.in == "path" {
		o.required = append(o.required, argument.Argument)
	}
	o.add(argument, p.Node, o.withDescription(o.schemas.translate(stated, 0), p.Node))
}

// styled reports whether a parameter has the one supported style of its location.
func (o *operation) styled(p parameter) bool {
	expected := "simple"
	if p.in == "query" {
		expected = "form"
	}
	_, style, ok := p.Child("style")
	if ok && style.Value != expected {
		o.reportFault(style, "found the style %s of the %s parameter %q; expected %s", style.Excerpt(), p.in, p.name, expected)
		return false
	}
	return true
}

// list reports whether the value of a parameter may be a list. It refuses values that have
// no form outside of JSON.
func (o *operation) list(p parameter, schema document.Node) (list, ok bool) {
	if _, problem := o.follow(schema); problem != "" {
		o.reportFault(schema, "%s", problem)
		return false, false
	}
	kinds, ok := o.kinds(schema, 0)
	if !ok {
		o.reportFault(p.Node, "found the %s parameter %q without a type; expected a string, a number, a boolean, or a list of them", p.in,
			p.name)
		return false, false
	}
	if slices.Contains(kinds, "object") {
		o.reportFault(p.Node, "found the %s parameter %q, which is or holds an object, or a list of lists; expected a string, a number, a boolean, or a list of them", p.in, p.name)
		return false, false
	}
	return slices.Contains(kinds, "array"), true
}

// kinds are the types that a schema allows; ok is false if it does not restrict them. A
// list of anything but primitive values counts as an object. Each schema is visited once,
// however many others refer to it.
func (o *operation) kinds(n document.Node, depth int) (kinds []string, ok bool) {
	n, problem := o.follow(n)
	if problem != "" || !n.IsMapping() || depth > maxHops {
		return nil, false
	}
	before, seen := o.typesOf[n.Node]
	if !seen {
		o.typesOf[n.Node] = typeSet{} // what leads back to it says nothing
		before.kinds, before.ok = o.statedKinds(n, depth)
		slices.Sort(before.kinds)
		before.kinds = slices.Compact(before.kinds)
		o.typesOf[n.Node] = before
	}
	return slices.Clone(before.kinds), before.ok
}

// statedKinds are those of a schema that was not visited yet.
func (o *operation) statedKinds(n document.Node, depth int) (kinds []string, ok bool) {
	if _, stated, has := n.Child("type"); has {
		types := stated.Content
		if stated.Kind == yaml.ScalarNode {
			types = []*yaml.Node{stated.Node}
		}
		for _, t := range types {
			kinds = append(kinds, t.Value)
		}
		if !slices.Contains(kinds, "array") {
			return kinds, len(kinds) > 0
		}
		_, items, has := n.Child("items")
		if !has {
			return nil, false
		}
		inner, ok := o.kinds(items, depth+1)
		if slices.Contains(inner, "array") || slices.Contains(inner, "object") {
			kinds = append(kinds, "object")
		}
		return kinds, ok
	}
	if _, values, has := n.Child("enum"); has && values.IsList() {
		for _, v := range values.Content {
			switch v.Kind {
			case yaml.ScalarNode:
				kinds = append(kinds, strings.TrimPrefix(v.ShortTag(), "!!"))
			default:
				kinds = append(kinds, "object")
			}
		}
		return kinds, true
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if _, branches, has := n.Child(key); has && branches.IsList() {
			for _, b := range branches.Content {
				more, ok := o.kinds(branches.With(b), depth+1)
				if !ok {
					return nil, false
				}
				kinds = append(kinds, more...)
			}
			return kinds, true
		}
	}
	if _, branches, has := n.Child("allOf"); has && branches.IsList() {
		for _, b := range branches.Content {
			if kinds, ok := o.kinds(branches.With(b), depth+1); ok {
				return kinds, true
			}
		}
	}
	return nil, false
}
