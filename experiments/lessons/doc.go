// Package lessons teaches how LLM serving behaves, in ten lessons for a class. A lesson has one idea. It runs
// scenarios, shows what came out in a table and a picture, and checks what it claims: every number that it
// prints was measured in the run that prints it.
//
// A lesson is data for the most part: a record of words in text, scenarios that run by themselves in scenarios, and a
// function that reads the results. [All] lists the lessons, [Find] looks one up, and [Lesson.Run] holds it.
package lessons
