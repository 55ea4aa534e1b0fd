// Package lessons teaches how LLM serving behaves, in ten lessons for a class. A lesson has one idea. It runs
// scenarios, shows the results in a table and a picture, and checks its claims. Every number that it prints was
// measured in the same run.
//
// A lesson has three parts: its text in text, scenarios that also run alone in scenarios, and a function that reads the
// results. [All] lists the lessons, [Find] finds one, and [Lesson.Run] runs it.
package lessons
