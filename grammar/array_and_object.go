package grammar

import (
	"fmt"
	"maps"
	"slices"
)

// array matches the arrays that keep all parts.
func (c *compiler) array(hint string, parts []part) (expr, error) {
	least, most, unique, prefix := 0, -1, false, 0
	for _, p := range parts {
		least = max(least, count(p.keywords["minItems"], 0))
		most = lower(most, count(p.keywords["maxItems"], -1))
		unique = unique || p.keywords["uniqueItems"] == true
		prefix = max(prefix, len(list(p.keywords["prefixItems"])))
	}
	var first []expr // of the places that prefixItems names
	for at := range prefix {
		e, err := c.item(hint, parts, at)
		if err != nil {
			return nil, err
		}
		if e == nil {
			most = lower(most, at)
			break
		}
		first = append(first, e)
	}
	rest := expr(nil)
	if most < 0 || most > prefix {
		e, err := c.item(hint, parts, prefix)
		if err != nil {
			return nil, err
		}
		if rest = e; e == nil {
			most = lower(most, prefix)
		}
	}
	if unique && most != 0 && most != 1 {
		if prefix > 0 || least > 1 {
			return nil, fmt.Errorf("uniqueItems cannot be written as a grammar")
		}
		c.note("arrays whose items must differ have one item at most")
		most = 1
	}
	if least > maxRepeats {
		return nil, fmt.Errorf("minItems %d is beyond %d repetitions", least, maxRepeats)
	}
	if most > maxRepeats {
		c.note("arrays of more than %d items are left out where the schema bounds them", maxRepeats)
		most = maxRepeats
	}
	if most >= 0 && least > most {
		return nil, nil
	}
	return seq(literal("["), c.space(), c.items(first, rest, least, most), c.space(), literal("]")), nil
}

// item matches the items at a place.
func (c *compiler) item(hint string, parts []part, at int) (expr, error) {
	var schemas []any
	for _, p := range parts {
		prefix := list(p.keywords["prefixItems"])
		switch items, has := p.keywords["items"]; {
		case at < len(prefix):
			schemas = append(schemas, prefix[at])
		case has:
			schemas = append(schemas, items)
		default:
			unevaluated, has := p.keywords["unevaluatedItems"]
			if has && !slices.ContainsFunc(parts, func(o part) bool {
				_, all := o.keywords["items"]
				return slices.Contains(o.within, p.id) && (all || at < len(list(o.keywords["prefixItems"])))
			}) {
				schemas = append(schemas, unevaluated)
			}
		}
	}
	if len(schemas) == 0 {
		return c.anything(), nil
	}
	return c.value(hint+"-item", schemas)
}

// object matches the objects that keep all parts.
func (c *compiler) object(hint string, parts []part) (expr, error) {
	declared, required := map[string]bool{}, map[string]bool{}
	least, most := 0, -1
	for _, p := range parts {
		members, _ := p.keywords["properties"].(map[string]any)
		for name := range members {
			declared[name] = true
		}
		for _, name := range list(p.keywords["required"]) {
			declared[name.(string)], required[name.(string)] = true, true
		}
		least = max(least, count(p.keywords["minProperties"], 0))
		most = lower(most, count(p.keywords["maxProperties"], -1))
	}
	o := objectRules{least: least, most: most}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		value, err := c.memberValue(hint, parts, name)
		if err != nil {
			return nil, err
		}
		if value == nil {
			if required[name] {
				return nil, nil
			}
			o.forbidden = append(o.forbidden, name)
			continue
		}
		o.names = append(o.names, name)
		o.entries = append(o.entries, c.rules.define(hint+"-"+name, c.member(name, value)))
		o.required = append(o.required, required[name])
	}
	other := "member" // stands for the members that no part declares
	for declared[other] {
		other += "-"
	}
	var err error
	if o.open, err = c.memberValue(hint, parts, other); err != nil {
		return nil, err
	}
	return c.members(hint, o), nil
}

// memberValue matches the values of a member.
func (c *compiler) memberValue(hint string, parts []part, name string) (expr, error) {
	var schemas []any
	for _, p := range parts {
		members, _ := p.keywords["properties"].(map[string]any)
		if s, has := members[name]; has {
			schemas = append(schemas, s)
			continue
		}
		if s, has := p.keywords["additionalProperties"]; has {
			schemas = append(schemas, s)
			continue
		}
		if s, has := p.keywords["unevaluatedProperties"]; has && !evaluated(parts, p.id, name) {
			schemas = append(schemas, s)
		}
	}
	if len(schemas) == 0 {
		return c.anything(), nil
	}
	return c.value(hint+"-"+name, schemas)
}

// evaluated reports whether a part within another has evaluated a member.
func evaluated(parts []part, within int, name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool {
		if !slices.Contains(p.within, within) {
			return false
		}
		members, _ := p.keywords["properties"].(map[string]any)
		_, named := members[name]
		_, all := p.keywords["additionalProperties"]
		return named || all
	})
}
