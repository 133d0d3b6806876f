"""How a load becomes visible: the seam *commit*, and a module for each format of tables."""
