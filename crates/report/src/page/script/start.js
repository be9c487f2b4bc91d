startTheme();
startTips();
startPlots();
startLegends();
startMatrices();
startSaving();
