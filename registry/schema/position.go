package schema

// position is the way in which a schema stands.
type position int

const (
	unchanged      position = iota // in a branch or a test
	resultPosition                 // for a place of a value that is judged as written: results
	valuePosition                  // for a place below the root
	rootPosition                   // for the arguments themselves
	valueTarget                    // target of a reference that a place holds
	rootTarget                     // target of a reference that the root holds
	rootBranch                     // a branch that judges the arguments themselves
	rootTest                       // the same inside if or checkOneOf, where to refuse more may be to accept more
)

// mustAccept tells that a value is valid only if a schema that stands so accepts the
// part of it that it stands for.
func (st position) mustAccept() bool {
	return st == resultPosition || st == valuePosition || st == rootPosition || st == valueTarget || st == rootTarget
}

// atRoot tells that a schema judges the arguments themselves.
func (st position) atRoot() bool {
	return st == rootPosition || st == rootTarget || st == rootBranch || st == rootTest
}

func targetPosition(st position) position {
	switch st {
	case valuePosition, valueTarget:
		return valueTarget
	case rootPosition, rootTarget:
		return rootTarget
	}
	return st
}

func childPosition(st position, name string) position {
	switch keywords[name].scope {
	case childApplicator:
		switch st {
		case resultPosition:
			return resultPosition
		case valuePosition, valueTarget, rootPosition, rootTarget:
			return valuePosition
		}
	case inPlaceApplicator:
		switch {
		case !st.atRoot():
		case st == rootTest || name == "if" || name == "oneOf":
			return rootTest
		default:
			return rootBranch
		}
	}
	return unchanged
}
