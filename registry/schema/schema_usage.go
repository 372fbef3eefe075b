package schema

// position says how a schema is used in a definition.
type position int

const (
	unchanged      position = iota // in a branch or a test: nothing is closed
	resultPosition                 // a place in a result, which is evaluated as its author wrote it
	valuePosition                  // a place below the root
	rootPosition                   // the arguments themselves
	valueTarget                    // the target of a reference in valuePosition
	rootTarget                     // the target of a reference in rootPosition
	rootBranch                     // a branch that applies to the arguments themselves
	rootTest                       // the same inside if or checkOneOf, where to refuse more may be to accept more
)

// atRoot reports whether a schema applies to the arguments themselves.
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
