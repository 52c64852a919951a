"""The guide: which placement to choose, from what ships with NormViz and nothing else. Torch-free.

facts       cells of the shipped maps -> what each placement did in one setting; census; cost
answers     the questions of the guide, their options, and both as a link
picks       answers -> the placements that nothing separates, each with a reason and its lines
properties  the property table: what is claimed of each placement, beside what was measured
confusions  questions that people ask, with a measured answer
"""
