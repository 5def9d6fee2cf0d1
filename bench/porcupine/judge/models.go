package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"
)

type kind uint8

const (
	read_ kind = iota
	write
	cas
	add
	remove
	enqueue
	dequeue
	put
	appendText
	get
)

var kinds = map[string]kind{
	"read": read_, "write": write, "cas": cas, "add": add, "remove": remove,
	"enqueue": enqueue, "dequeue": dequeue, "put": put, "append": appendText, "get": get,
}

// input is an operation with its result, as numbers.
type input struct {
	kind    kind
	unknown bool // it was never completed, so that it has no result
	value   int
	old     int
	list    []int
	key     string
	text    string
}

func inputOf(model string, each event, pending bool, values *values) (input, error) {
	known, exists := kinds[each.F]
	if !exists {
		return input{}, fmt.Errorf("unknown operation %s", each.F)
	}
	found := input{kind: known, unknown: pending}
	switch {
	case model == "kv":
		var pair []*string
		if err := json.Unmarshal(each.Value, &pair); err != nil || len(pair) != 2 || pair[0] == nil {
			return found, fmt.Errorf("%s is not a pair of texts", each.Value)
		}
		found.key = *pair[0]
		if pair[1] == nil {
			found.unknown = true
		} else {
			found.text = *pair[1]
		}
	case known == cas:
		pair, err := values.list(each.Value)
		if err != nil || len(pair) != 2 {
			return found, fmt.Errorf("%s is not a pair", each.Value)
		}
		found.old, found.value = pair[0], pair[1]
	case model == "linearizable-set" && known == read_ && !pending:
		list, err := values.list(each.Value)
		if err != nil {
			return found, err
		}
		sort.Ints(list)
		found.list = list
	default:
		found.value = values.of(each.Value)
		found.unknown = pending || found.value == none
	}
	return found, nil
}

func modelOf(name string, values *values) (porcupine.Model, error) {
	switch name {
	case "register", "cas-register":
		return registerModel(values.initial), nil
	case "kv":
		return kvModel(), nil
	case "fifo-queue":
		return queueModel(), nil
	case "linearizable-set":
		return setModel(), nil
	}
	return porcupine.Model{}, fmt.Errorf("there is no model %s", name)
}

// registerModel is that of Porcupine's etcd tests, without operations that failed.
func registerModel(initial int) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return initial },
		Step: func(state, in, _ interface{}) (bool, interface{}) {
			held, each := state.(int), in.(input)
			switch each.kind {
			case write:
				return true, each.value
			case cas:
				if held == each.old {
					return true, each.value
				}
				return each.unknown, held
			}
			return each.unknown || held == each.value, held
		},
	}
}

// kvModel is that of Porcupine's key-value tests: a text for each key.
func kvModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, each := range history {
				key := each.Input.(input).key
				byKey[key] = append(byKey[key], each)
			}
			keys := make([]string, 0, len(byKey))
			for key := range byKey {
				keys = append(keys, key)
			}
			sort.Strings(keys)
			found := make([][]porcupine.Operation, 0, len(keys))
			for _, key := range keys {
				found = append(found, byKey[key])
			}
			return found
		},
		Init: func() interface{} { return "" },
		Step: func(state, in, _ interface{}) (bool, interface{}) {
			held, each := state.(string), in.(input)
			switch each.kind {
			case put:
				return true, each.text
			case appendText:
				return true, held + each.text
			}
			return each.unknown || held == each.text, held
		},
	}
}

func queueModel() porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return []int(nil) },
		Step: func(state, in, _ interface{}) (bool, interface{}) {
			held, each := state.([]int), in.(input)
			if each.kind == enqueue {
				return true, append(held[:len(held):len(held)], each.value)
			}
			if len(held) == 0 {
				return each.unknown || each.value == empty, held
			}
			return each.unknown || held[0] == each.value, held[1:]
		},
		Equal: equalLists,
		Hash:  hashList,
	}
}

func setModel() porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return []int(nil) },
		Step: func(state, in, _ interface{}) (bool, interface{}) {
			held, each := state.([]int), in.(input)
			if each.kind == read_ {
				return each.unknown || slices.Equal(held, each.list), held
			}
			place, found := slices.BinarySearch(held, each.value)
			if found == (each.kind == add) {
				return true, held
			}
			if each.kind == add {
				return true, slices.Insert(slices.Clone(held), place, each.value)
			}
			return true, slices.Delete(slices.Clone(held), place, place+1)
		},
		Equal: equalLists,
		Hash:  hashList,
	}
}

func equalLists(one, other interface{}) bool {
	return slices.Equal(one.([]int), other.([]int))
}

func hashList(state interface{}) uint64 {
	hash := uint64(14695981039346656037)
	for _, each := range state.([]int) {
		hash = (hash ^ uint64(each)) * 1099511628211
	}
	return hash
}
